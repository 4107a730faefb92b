// Record what o200k_base counts for the texts of tests/fixtures/tokens/texts.json:
//   npm install gpt-tokenizer@4 && node tools/record_tokens.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

const folder = new URL("../tests/fixtures/tokens/", import.meta.url);
const texts = JSON.parse(readFileSync(new URL("texts.json", folder), "utf8"));
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
const counts = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, countTokens(text, plain)]));
const record = { encoding: "o200k_base", counts };
writeFileSync(new URL("counts.json", folder), JSON.stringify(record, null, 1) + "\n");
