from zurelay.problems import Problem, SettingsError, shown


def test_a_problem_is_written_with_its_line_and_path() -> None:
    problem = Problem(12, "models.opus.price.inptu", "unknown key; did you mean input?")

    assert str(problem) == "line 12: models.opus.price.inptu: unknown key; did you mean input?"


def test_a_problem_of_the_whole_file_has_no_path() -> None:
    assert str(Problem(3, "", "not valid YAML")) == "line 3: not valid YAML"


def test_a_problem_of_no_line_is_written_without() -> None:
    assert str(Problem(0, "models.opus", "wrong")) == "models.opus: wrong"


def test_problems_are_in_the_order_of_their_lines_and_keep_theirs_on_one_line() -> None:
    error = SettingsError([Problem(2, "b", "x"), Problem(1, "z", "x"), Problem(2, "a", "x")])

    assert [problem.path for problem in error.problems] == ["z", "b", "a"]
    assert str(error) == "line 1: z: x\nline 2: b: x\nline 2: a: x"


def test_a_word_from_the_file_is_shown_short_and_on_one_line() -> None:
    assert shown("a\nb\x1b[31m") == "a?b?[31m"
    assert shown("x" * 65) == "x" * 64 + "..."
    assert shown("x" * 64) == "x" * 64
