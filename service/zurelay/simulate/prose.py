"""Prose that answers a text in its own language, as far as that is simple to tell."""

from __future__ import annotations

import re

import msgspec

_QUOTE = 80  # characters of the user's text that are quoted
_MAIN_WORDS = 4
_SHORT = 3  # letters; shorter words say little of what a text is about
_LOOKED_AT = 4096  # characters; prompts may have many millions
_SURE = 2  # words of a language that a text must have


class Language(msgspec.Struct, frozen=True):
    """Sentences of one language; `signs` are words or letters that tell it."""

    signs: str
    answer: str
    tool: str
    thought: str
    nothing: str


# Scripts first, then words. English is what remains.
_BY_SCRIPT = (
    Language(
        "\u3040-\u30ff",
        "「{quote}」について、これは模擬の回答です。要点: {words}。",
        "ツールの結果: {result}。",
        "「{quote}」を考えます。",
        "内容",
    ),
    Language(
        "\uac00-\ud7af",
        "「{quote}」에 대한 모의 답변입니다. 핵심: {words}.",
        "도구의 결과: {result}.",
        "「{quote}」을(를) 생각합니다.",
        "내용",
    ),
    Language(
        "\u4e00-\u9fff",
        "关于「{quote}」, 这是一个模拟的回答。要点: {words}。",
        "工具的结果: {result}。",
        "我在考虑「{quote}」。",
        "内容",
    ),
    Language(
        "\u0400-\u04ff",
        "Вы написали: «{quote}». Это имитация ответа. Главное: {words}.",
        "Инструмент вернул: {result}.",
        "Обдумываю «{quote}».",
        "содержимое",
    ),
    Language(
        "\u0600-\u06ff",
        "كتبت: «{quote}». هذه إجابة محاكاة. الأهم: {words}.",
        "أعادت الأداة: {result}.",
        "أفكر في «{quote}».",
        "المحتوى",
    ),
    Language(
        "\u0900-\u097f",
        "आपने लिखा: “{quote}”। यह एक नकली उत्तर है। मुख्य बातें: {words}।",
        "उपकरण का परिणाम: {result}।",
        "मैं “{quote}” पर सोच रहा हूँ।",
        "सामग्री",
    ),
)
_BY_WORDS = (
    Language(
        "o os uma um não você que para com em é do da como qual isso",
        "Você escreveu: “{quote}”. Esta é uma resposta simulada, e o principal é: {words}.",
        "A ferramenta respondeu: {result}.",
        "O pedido é “{quote}”, vou por partes.",
        "o conteúdo",
    ),
    Language(
        "el la los una un no usted que para con en es del como cuál qué esto",
        "Escribiste: «{quote}». Esta es una respuesta simulada, y lo principal es: {words}.",
        "La herramienta respondió: {result}.",
        "La petición es «{quote}», voy por partes.",
        "el contenido",
    ),
    Language(
        "le les une un ne vous que pour avec est des du comment quel ce je",
        "Vous avez écrit : « {quote} ». Voici une réponse simulée, et l'essentiel est : {words}.",
        "L'outil a répondu : {result}.",
        "La demande est « {quote} », procédons par étapes.",
        "le contenu",
    ),
    Language(
        "der die das ein eine nicht sie und für mit ist wie was ich zu",
        "Sie schrieben: „{quote}“. Dies ist eine simulierte Antwort, und das Wichtigste ist: {words}.",
        "Das Werkzeug lieferte: {result}.",
        "Gefragt ist „{quote}“, ich gehe es der Reihe nach durch.",
        "der Inhalt",
    ),
    Language(
        "yang dan apa saya tidak untuk dengan ini itu di adalah bagaimana anda ke",
        "Anda menulis: “{quote}”. Ini jawaban simulasi, dan yang utama adalah: {words}.",
        "Alat itu menjawab: {result}.",
        "Permintaannya “{quote}”, saya pikirkan satu per satu.",
        "isi pesan",
    ),
)
_ENGLISH = Language(
    "",
    "You wrote: “{quote}”. This is a simulated answer, and what matters most is: {words}.",
    "The tool returned: {result}.",
    "The request is “{quote}”, so let me take it step by step.",
    "the content",
)

_WORD = re.compile(r"[^\W_][^\W_'\u2019-]*(?:['\u2019-][^\W_]+)*")
# One letter of a script without spaces, or a word with the spaces before it.
_PIECE = re.compile(
    r"\s*[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\s*[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\s+"
)


def pieces(text: str) -> tuple[str, ...]:
    """Cut a text into pieces of about a token; joined they are the text."""
    return tuple(_PIECE.findall(text))


def answer(text: str, results: tuple[str, ...]) -> str:
    """Answer a text; after tools ran, tell what they returned."""
    text = text[:_LOOKED_AT]
    language = _language(text)
    said = language.answer.format(quote=_quote(text, language), words=", ".join(_main_words(text)) or language.nothing)
    told = [language.tool.format(result=_shorten(result) or language.nothing) for result in results]
    return " ".join([*told, said])


def thoughts(text: str, level: int) -> str:
    """Think about a text, the longer the higher the level."""
    text = text[:_LOOKED_AT]
    language = _language(text)
    words = _main_words(text) or (language.nothing,)
    steps = [f"{step + 1}. {words[step % len(words)]}." for step in range(2 * level)]
    return "\n".join([language.thought.format(quote=_quote(text, language)), *steps])


def subject(text: str) -> str:
    """Say in a word or two what a text is about: its last capitalised word that opens no sentence, else its start."""
    names = re.findall(r"(?<=[^\W_] )[^\W\d_a-z][^\W\d_]+", text[:_LOOKED_AT])
    return names[-1] if names else _shorten(text, 40) or _ENGLISH.nothing


def _language(text: str) -> Language:
    for language in _BY_SCRIPT:
        if re.search(f"[{language.signs}]", text):
            return language
    words = set(_WORD.findall(text.lower()))
    votes = {language: len(words & set(language.signs.split())) for language in _BY_WORDS}
    best = max(_BY_WORDS, key=lambda language: votes[language])
    return best if votes[best] >= _SURE else _ENGLISH


def _quote(text: str, language: Language) -> str:
    return _shorten(text) or language.nothing


def _shorten(text: str, size: int = _QUOTE) -> str:
    text = " ".join(text[:_LOOKED_AT].split())
    return text if len(text) <= size else text[: size - 1].rstrip() + "…"


def _main_words(text: str) -> tuple[str, ...]:
    """Choose the longest words, in the order in which they first stand."""
    words = list(dict.fromkeys(word for word in _WORD.findall(text) if len(word) > _SHORT))
    longest = sorted(words, key=len, reverse=True)[:_MAIN_WORDS]
    return tuple(word for word in words if word in longest)
