CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE papers (
    n INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, title TEXT NOT NULL, abstract TEXT NOT NULL,
    authors TEXT NOT NULL, year INTEGER, date TEXT NOT NULL, venue TEXT NOT NULL,
    categories TEXT NOT NULL, doi TEXT NOT NULL, arxiv TEXT NOT NULL, url TEXT NOT NULL,
    source TEXT NOT NULL, run INTEGER NOT NULL);
CREATE TABLE scopes (  -- narrow, as every search with a limit reads it
    n INTEGER PRIMARY KEY, year INTEGER, first INTEGER, last INTEGER, venue INTEGER NOT NULL);
CREATE TABLE venues (v INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, name TEXT NOT NULL);
CREATE TABLE ids (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX ids_of ON ids (n);
CREATE TABLE titles (key INTEGER, n INTEGER, whole INTEGER, PRIMARY KEY (key, n)) WITHOUT ROWID;
CREATE TABLE refs (
    citing INTEGER, place INTEGER, cited TEXT NOT NULL, PRIMARY KEY (citing, place)) WITHOUT ROWID;
CREATE INDEX refs_to ON refs (cited);
CREATE TABLE merges (n INTEGER, id TEXT, by TEXT, record TEXT);
CREATE TABLE vectors (n INTEGER PRIMARY KEY, place INTEGER NOT NULL);
CREATE TABLE sources (
    identity TEXT PRIMARY KEY, run INTEGER NOT NULL, name TEXT NOT NULL, done INTEGER NOT NULL,
    finished INTEGER NOT NULL, report TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(
    title, abstract, content='papers', content_rowid='n',
    tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
INSERT INTO about VALUES ('uid', lower(hex(randomblob(16))));
