"""PubMed's XML, invented: articles, chapters, deletions and files, whole or broken."""

import gzip
import hashlib

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD '
    'PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n<PubmedArticleSet>\n'
)
TAIL = "</PubmedArticleSet>\n"
MATH = 'xmlns:mml="http://www.w3.org/1998/Math/MathML"'


def article(
    pmid,
    *,
    title="Moss on walls.",
    abstract=(("", "Moss covered most walls."),),
    version=1,
    date="<Year>2019</Year>",
    more="",
    types="<PublicationType>Journal Article</PublicationType>",
    comments="",
    after="",
):
    """A citation; texts are XML, and stand in it as they are."""
    parts = "".join(
        f'<AbstractText Label="{label}">{text}</AbstractText>'
        if label
        else f"<AbstractText>{text}</AbstractText>"
        for label, text in abstract or ()
    )
    whole = f"<Abstract>{parts}{more}</Abstract>" if abstract is not None else ""
    return f"""<PubmedArticle>
  <MedlineCitation Status="MEDLINE" Owner="NLM">
    <PMID Version="{version}">{pmid}</PMID>
    <Article PubModel="Print">
      <Journal><JournalIssue><PubDate>{date}</PubDate></JournalIssue>
        <Title>Annals of invented botany</Title></Journal>
      <ArticleTitle>{title}</ArticleTitle>{whole}
      <Language>eng</Language>
      <PublicationTypeList>{types}</PublicationTypeList>
    </Article>
    {comments}
    <MeshHeadingList><MeshHeading><DescriptorName>Bryophyta</DescriptorName></MeshHeading>
    </MeshHeadingList>{after}
  </MedlineCitation>
  <PubmedData><ArticleIdList><ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList>
  </PubmedData>
</PubmedArticle>
"""


def book(pmid):
    """A chapter of a book."""
    return (
        f'<PubmedBookArticle><BookDocument><PMID Version="1">{pmid}</PMID>'
        "<Book><BookTitle>Invented mosses</BookTitle></Book><ArticleTitle>Walls.</ArticleTitle>"
        "<Abstract><AbstractText>A chapter on walls.</AbstractText></Abstract>"
        "</BookDocument></PubmedBookArticle>\n"
    )


def deletion(*pmids):
    """Citations that an update deletes."""
    listed = "".join(f'<PMID Version="1">{one}</PMID>' for one in pmids)
    return f"<DeleteCitation>{listed}</DeleteCitation>\n"


def document(*elements):
    """A file, as bytes."""
    return (HEAD + "".join(elements) + TAIL).encode()


def write(folder, number, *elements, signed=False):
    """Write a file of the baseline or its updates; return its path."""
    path = folder / f"pubmed25n{number:04}.xml.gz"
    path.write_bytes(gzip.compress(document(*elements), 1, mtime=0))
    if signed:
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        path.with_name(f"{path.name}.md5").write_text(f"MD5({path.name})= {digest}\n")
    return path
