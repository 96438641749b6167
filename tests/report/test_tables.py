"factlib.report.tables: exact round trips, and hostile cells in every format."
import csv, html.parser, io, math, os, re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import Absence, BadInput
from factlib.core.files import unescape_formula
from factlib.report.tables import (format_estimate, format_interval, format_number, format_p,
                                   read_table, safe_url, to_csv, to_html, to_latex, to_markdown,
    write_table)

TEXT = st.text(st.characters(exclude_categories=['Cs']), max_size=12)
NASTY = st.sampled_from(['a|b', '<script>alert(1)</script>', '&amp;',
                         '"q"', "it's", '$x_1$ & 5% #3 {b} ~^\\', 'line\nbreak', '007', '2000', 'nan', 'NA', 'True', '',
    ' pad ', '[x](javascript:y)', '-', '=1+1', '文書', 'e\u0301', '\ufeffbom',
                         '-0.5', '1e5', 'inf', ',', '\r\n', '\\\\[2em]', '*'])
FLOAT = st.floats(allow_nan=False, allow_infinity=False)

def same(a, b):
    "Equal with type, bit for bit; every missing value is like every other."
    if a is None or a is pd.NA or isinstance(a, float) and math.isnan(a):
        return b is None or b is pd.NA or isinstance(b, float) and math.isnan(b)
    if isinstance(a, str) or isinstance(b, str): return isinstance(a, str) and isinstance(b, str) and a == b
    if isinstance(a, float): return isinstance(b, float) and a.hex() == b.hex()
    return type(a) is type(b) and a == b

def trip(frame, folder):
    return read_table(write_table(frame, f'{folder}/t', 'csv')[0])

@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NASTY | TEXT, st.none() | NASTY | TEXT, FLOAT,
                          st.none() | FLOAT, st.integers(-2**62, 2**62), st.booleans()), min_size=1, max_size=6))
def test_csv_gives_the_same_frame_back(tmp_path_factory, rows):
    frame = pd.DataFrame(rows, columns=['id', 'note', 'x', 'gap', 'n',
                                        'ok']).astype(dict(id=object, note=object, gap=float))
    back = trip(frame, tmp_path_factory.mktemp('t'))
    assert list(back.columns) == list(frame.columns) and len(back) == len(frame)
    for c in frame.columns:
        for a, b in zip(frame[c].tolist(), back[c].tolist()): assert same(a, b), (c, a, b)
    assert back.n.dtype == 'int64' and back.ok.dtype == bool and back.x.dtype == float

@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NASTY | TEXT, st.none() | FLOAT), min_size=1, max_size=5))
def test_csv_is_what_the_standard_library_reads(rows):
    frame = pd.DataFrame(rows, columns=['id', 'x']).astype(dict(id=object))
    got = list(csv.reader(io.StringIO(to_csv(frame), newline=''), strict=True))
    assert [[unescape_formula(a), b] for a, b in got] == [['id', 'x']] + [[a, '' if b is None else repr(b)]
                                                                          for a, b in rows]

def test_no_spreadsheet_runs_a_text(tmp_path):
    "Before, a label `=cmd|' /C calc'!A0` from outside stood in our CSV as it was, and a spreadsheet ran it."
    texts = ["=cmd|' /C calc'!A0", '+1+1', '-2+3', '@SUM(A1)', '\t=1',
             '\r=1', "'=1", "''=1", '＝1', '-3.5', '+5', "'tis", 'a=b', '']
    frame = pd.DataFrame({'=head': texts, 'x': [-3.5]*len(texts)})
    rows = list(csv.reader(io.StringIO(to_csv(frame), newline=''), strict=True))
    assert rows[0] == ["'=head", 'x'] and {row[1] for row in rows[1:]} == {'-3.5'}
    assert [a for a, _ in rows[1:]] == ["'" + t for t in texts[:9]] + texts[9:]
    pd.testing.assert_frame_equal(trip(frame, tmp_path), frame, check_dtype=False)
    frame.to_parquet(tmp_path/'t.parquet')
    assert pd.read_parquet(tmp_path/'t.parquet')['=head'].tolist() == texts

def test_ids_stay_text_and_numbers_stay_numbers(tmp_path):
    frame = pd.DataFrame(dict(a=['17', '007', '2000'], b=[17, 7, 2000],
                              c=[1.0, None, 3.0], d=pd.array([1, None, 3], 'Int64'), e=[None, None, None]))
    back = trip(frame, tmp_path)
    assert back.a.tolist() == ['17', '007', '2000'] and back.b.dtype == 'int64' and back.c.dtype == float
    assert back.d.dtype == 'Int64'
    assert back.d[0] == 1 and back.d.isna().tolist() == [False, True, False] and back.e.isna().all()

def test_one_header_row_and_missing_cells_are_empty():
    assert to_csv(pd.DataFrame({'a': ['x', None],
                                'b,c': [0.1 + 0.2, float('nan')]})) == 'a,"b,c"\n"x",0.30000000000000004\n,\n'
    assert to_csv(pd.DataFrame(dict(a=[]))) == 'a\n'
    assert to_csv(pd.DataFrame({2000: [Absence.looped], 'full': [np.float32(.5)]})) == '2000,full\n"looped",0.5\n'

def test_one_column_with_gaps(tmp_path):
    frame = pd.DataFrame(dict(a=[1.5, None, 2.5, None]))
    pd.testing.assert_frame_equal(trip(frame, tmp_path), frame)

def test_reads_what_others_wrote(tmp_path):
    file = tmp_path / 'other.csv'
    file.write_bytes('\ufeffname,n,x\r\nabc d,3,1e-3\r\n"q ""z""",,2\r\n\r\n'.encode())
    back = read_table(file)
    assert back.name.tolist() == ['abc d', 'q "z"'] and back.x.tolist() == [0.001, 2.0] and back.n[0] == 3
    assert back.n.isna()[1]

@pytest.mark.parametrize('content, says', [(b'', 'no header'), (b'a,b\n1\n', 'Row 1'), (b'a,a\n1,2\n', 'twice'),
                                           (b'a\n"x\n', 'quote'), (b'a\n"x"y\n', 'quote'), (b'\xff\xfe', 'UTF-8')])
def test_unreadable_files(tmp_path, content, says):
    (tmp_path / 'x.csv').write_bytes(content)
    with pytest.raises(BadInput, match=says): read_table(tmp_path / 'x.csv')

def test_absent_file_says_so(tmp_path):
    with pytest.raises(BadInput, match='No such file'): read_table(tmp_path / 'none.csv')

@pytest.mark.parametrize('frame, says', [
    ([1], 'DataFrame'), (pd.DataFrame(), 'no columns'), (pd.DataFrame(dict(a=[1.0, float('inf')])), "'a' holds inf"),
    (pd.DataFrame(dict(a=[[1]])), 'holds a list'),
    (pd.DataFrame([[1, 2]], columns=['a', 'a']), "called 'a'"),
    (pd.DataFrame([[1]], index=['x'], columns=['a']), 'reset_index'),
    (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([('a', 'b')])), 'header row')])
def test_frames_that_are_no_table(frame, says, tmp_path):
    with pytest.raises(BadInput, match=says): write_table(frame, tmp_path / 't')
    assert not list(tmp_path.iterdir())

def test_options_are_checked(tmp_path):
    frame = pd.DataFrame(dict(a=[1]))
    with pytest.raises(BadInput, match="format 'xls'"): write_table(frame, tmp_path / 't', ['csv', 'xls'])
    with pytest.raises(BadInput, match="no column 'b'"): to_markdown(frame, digits=dict(b=2))
    with pytest.raises(BadInput, match="no column 'b'"): to_html(frame, links=dict(a='b'))
    assert not list(tmp_path.iterdir())

def test_a_broken_character_leaves_the_old_files(tmp_path):
    write_table(pd.DataFrame(dict(a=['old'])), tmp_path / 't', 'csv')
    with pytest.raises(BadInput, match='broken character'):
        write_table(pd.DataFrame(dict(a=pd.Series(['\ud800'], dtype=object))), tmp_path / 't', 'csv')
    assert (tmp_path / 't.csv').read_text() == 'a\n"old"\n' and len(list(tmp_path.iterdir())) == 1

def test_numbers_for_readers():
    assert [format_number(x) for x in (1, 1.0, -2.5, -1e-9, np.int64(-3), np.float32(.25),
                                       None, pd.NA)] == ['1', '1.000', '−2.500', '0.000', '−3', '0.250', '–', '–']
    assert format_number(123456.789, 1) == '123456.8'
    for x in (float('inf'), 'x', True, [1]):
        with pytest.raises(BadInput): format_number(x)
    assert format_estimate(0.5, (None, 1), 1) == '0.5 [–, 1.0]' and format_estimate(float('nan'), (1, 2)) == '–'

@given(st.floats(0, 1))
def test_a_p_value_is_never_rounded_to_certainty(p):
    text = format_p(p)
    number = float(text.lstrip('<> '))
    if text[0] == '<': assert p < number
    elif text[0] == '>': assert p > number
    else: assert abs(p - number) <= .0005 + 1e-12 and (number > 0 and (number < 1 or p == 1))

def test_p_outside_its_range():
    for p in (-.1, 1.1, 'x', True):
        with pytest.raises(BadInput): format_p(p)

def cells_of(line): return [c.strip() for c in re.split(r'(?<!\\)\|', line)[1:-1]]

@settings(max_examples=150, deadline=None)
@given(st.lists(NASTY | TEXT, min_size=1, max_size=4))
def test_markdown_keeps_its_grid_and_shows_no_markup(texts):
    frame = pd.DataFrame(dict(t=pd.Series(texts, dtype=object), x=1.5))
    lines = to_markdown(frame).removesuffix('\n').split('\n')
    assert len(lines) == len(texts) + 2
    for line, text in zip(lines[2:], texts):
        cells = re.split(r'(?<!\\)(?:\\\\)*\|', line)
        assert len(cells) == 4 and cells[2].strip() == '1.500'
        assert not re.search(r'<(?! )|(?<!\\)(?:\\\\)*[`*\[\]$~]', line)

def test_markdown_numbers_stand_right():
    lines = to_markdown(pd.DataFrame(dict(a=['x_y', '_e_'], n=[1, None], ok=[True, None])),
                        names=dict(n='N')).splitlines()
    assert cells_of(lines[0]) == ['a', 'N', 'ok'] and cells_of(lines[1])[1].endswith('-:')
    assert not cells_of(lines[1])[0].endswith(':')
    assert cells_of(lines[2]) == ['x_y', '1.000', 'yes'] and cells_of(lines[3]) == [r'\_e\_', '–', '–']

UNLATEX = {r'\textasciitilde{}': '~', r'\textasciicircum{}': '^', r'\textbackslash{}': '\\',
           r'\textless{}': '<', r'\textgreater{}': '>', r'\textbar{}': '|',
    r'\textquotedbl{}': '"', '{[}': '[', '{]}': ']', '{*}': '*'} | {'\\' + c: c for c in '&%$#_{}'}
TOKEN = re.compile('|'.join(map(re.escape, sorted(UNLATEX, key=len, reverse=True))) + r'|[^\\&%$#_{}~^<>|"\[\]*]', re.S)

@settings(max_examples=200, deadline=None)
@given(NASTY | st.text(st.sampled_from('ab \\&%$#_{}~^<>|"[]*文'), max_size=15))
def test_latex_can_be_read_back(text):
    "Each cell is a sequence of safe letters and known escapes, and says the text."
    line = to_latex(pd.DataFrame(dict(t=pd.Series([text], dtype=object), n=[-1]))).splitlines()[5]
    cell, number = line.removesuffix(r' \\').rsplit(' & ', 1)
    assert number == '$-$1'
    tokens = TOKEN.findall(cell)
    assert ''.join(tokens) == cell
    assert ''.join(UNLATEX.get(t, t) for t in tokens) == re.sub(r'\s+', ' ', text).strip()

def test_latex_is_a_booktabs_tabular():
    text = to_latex(pd.DataFrame(dict(a=['x'], n=[None], x=[-.5])), caption='50 % & more', label='tab:{x}')
    assert r'\begin{tabular}{llr}' in text and r'x & -- & $-$0.500 \\' in text and r'\caption{50 \% \& more}' in text
    assert r'\label{tab:-x-}' in text
    assert [text.count(rule) for rule in (r'\toprule', r'\midrule', r'\bottomrule')] == [1, 1, 1]

class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.cells = [], []
        self.feed(text)
    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ('td', 'th'): self.cells.append('')
    def handle_data(self, data):
        if self.cells: self.cells[-1] += data

@settings(max_examples=150, deadline=None)
@given(NASTY | TEXT, NASTY | TEXT, NASTY | TEXT)
def test_html_shows_hostile_text_as_text(cell, head, caption):
    page = Page(to_html(pd.DataFrame({'h' + head: pd.Series([cell], dtype=object), 'n': [1]}), caption=caption))
    assert {tag for tag, _ in page.tags} <= {'table', 'caption', 'thead', 'tbody', 'tr', 'th', 'td'}
    clean = lambda x: re.sub(r'\s+', ' ', re.sub('[\x00-\x08\x0e-\x1f\x7f]', '\ufffd', x)).strip()
    assert [c.strip() for c in page.cells] == [clean('h' + head), 'n', clean(cell), '1']

def test_html_is_accessible():
    page = Page(to_html(pd.DataFrame(dict(judge=['a'], x=[.5], gap=[None])), caption='c'))
    assert [(t, a) for t, a in page.tags if t in ('th', 'td', 'abbr')] == [('th', dict(scope='col')),
                                                                           ('th', {'scope': 'col', 'class': 'number'}),
                                                                           ('th', dict(scope='col')),
        ('th', dict(scope='row')), ('td', {'class': 'number'}), ('td', {}), ('abbr', dict(title='no data'))]

@pytest.mark.parametrize('url', ['javascript:alert(1)', ' javascript:alert(1)', 'java\nscript:alert(1)',
                                 'JaVaScRiPt:x', 'data:text/html,x', 'vbscript:x', '//evil.example', '\\\\evil.example',
    'file:///etc/passwd', '\x01javascript:x', '', None, 5, 'http://[bad', 'x y', '/\\evil.example'])
def test_unsafe_addresses_are_no_links(url):
    assert safe_url(url) is None
    assert '<a' not in to_html(pd.DataFrame(dict(a=['t'], u=pd.Series([url], dtype=object))), links=dict(a='u'))

def test_safe_addresses_are_links():
    for url in ('https://example.org/a?b=c&d', 'http://x', 'page.html#a', '../tables/a.csv', 'a/b:c'):
        assert safe_url(url) == url
    page = Page(to_html(pd.DataFrame(dict(a=['t'], u=['x"y'])), links=dict(a='u')))
    assert ('a', dict(href='x"y')) in page.tags and len(page.cells) == 2

def test_a_narrow_interval_of_large_numbers_has_two_ends():
    assert format_interval(5e9, (5e9 - 2, 5e9 + 2), 0) == ' [4999999998, 5000000002]'
    assert format_interval(1e-10, (5e-11, 2e-10), 12) == ' [0.000000000050, 0.000000000200]'
    assert format_interval(5e9, (4e9, 5e9), 0) == ' [4000000000, 5000000000]'
    assert format_interval(5e9, (4e9, 5e9), 0, (0, 5e9)) == ' (at least 4000000000)'
    assert format_interval(0, (0, 1e9), 0, (0, 5e9)) == ' (at most 1000000000)'

def test_an_interval_that_ends_at_its_estimate_is_no_bound_unless_the_scale_ends_there():
    assert format_interval(0., (0., .41), 2, (-1, 1)) == ' [0.00, 0.41]' # widened to the null, say
    assert format_interval(-1, (-1, -.3), 2, (-1, 1)) == ' (at most −0.30)'
    assert format_interval(1, (1, 1), 2, (0, 1)) == ' [1.00, 1.00]'

@pytest.mark.parametrize('low, says', [(.004, '0.004'), (-.0004, '−0.0004'), (.00001, '0.00001'), (0, '0.00'),
                                       (1e-9, '0.00'), (.006, '0.01')])
def test_an_end_that_is_not_0_does_not_read_as_0(low, says):
    assert format_interval(.2, (low, .41), 2) == f' [{says}, 0.41]'
