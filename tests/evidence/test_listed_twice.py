"""References to one work: the same twice, or an article and its preprint."""

import pytest

from deepera_graph import ManuscriptCheck
from deepera_graph.evidence.check.report import describe_report

ARTICLE = "Roy B, Lee A. Wax on stored apples. J Fruit. 2012. doi:10.5555/wax.4"
AGAIN = "Roy B. Wax on stored apples. J Fruit. 2012. doi:10.5555/wax.4"
DRAFT = "Roy B, Lee A. Wax on stored apples. bioRxiv 2011. doi:10.1101/2011.01.01.123456"
BARE = "Roy B, Lee A. Wax on stored apples. bioRxiv. 2011"
ARXIV = "Roy B, Lee A. Wax on stored apples. arXiv:1101.01234. 2011"
TWICE = "the same work is in the list of references 2 times: "


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ([ARTICLE, DRAFT], ["2 is the preprint of 1"]),
        ([DRAFT, ARTICLE], ["1 is the preprint of 2"]),
        ([ARTICLE, BARE], ["2 is the preprint of 1"]),
        ([ARTICLE, ARXIV], ["2 is the preprint of 1"]),
        ([ARTICLE, AGAIN], [f"{TWICE}1, 2"]),
        ([DRAFT, DRAFT], [f"{TWICE}1, 2"]),
        ([ARTICLE, AGAIN, DRAFT], ["3 is the preprint of 1, 2", f"{TWICE}1, 2"]),
        ([ARTICLE, DRAFT, BARE], ["2, 3 are preprints of 1"]),
    ],
)
def test_a_preprint_is_no_duplicate_of_its_article(tmp_path, listed, told):
    path = tmp_path / "a.md"
    entries = "\n".join(f"{n}. {one}" for n, one in enumerate(listed, start=1))
    path.write_text(
        f"Wax keeps stored apples firm [1-{len(listed)}].\n\n# References\n\n{entries}\n"
    )
    lines = list(describe_report(ManuscriptCheck().check(path)))
    assert [one for one in lines if "preprint" in one or "same work" in one] == told
