"The audit of NarrativeFactScore's print, by hand, against scipy and against rouge-score."
import math

import pytest
import scipy

from factlib.core.files import data_home
from factlib.papers.narrativefactscore.misprints import (SUMMARIES, claims, coefficient, coefficients, f1_gaps,
                                                         facts_per_sentence, multiples, narrativefactscore_audit,
    printed_quality, remarked, repeated_cells, rouge_cells, spearman_of,
                                                         steps, storysumm_examples, strength, time_ratios)
from factlib.report.published import published

needs_storysumm = pytest.mark.skipif(not data_home() or not (data_home()/'storysumm'/'summaries.parquet').is_file(),
                                     reason='needs storysumm/ in FACTLIB_DATA')

@pytest.fixture(scope='module')
def audit(): return narrativefactscore_audit([]).set_index(['table', 'cell'])

def test_the_print():
    tables = published('narrativefactscore')
    sizes = {'1': 32, '2': 12, '3': 98, '4': 16, '5': 6, '6': 49, '7': 12,
             '8': 6, '9': 14, 'fig1': 2, 'abstract': 2, 'section 1': 6, 'section 4.1': 2, 'section 4.4': 8,
        'section 5.2': 1, 'section 5.3': 2, 'section 5.4': 2}
    assert {name: len(t.cells) for name, t in tables.items()} == sizes
    cells = {name: t.cells for name, t in tables.items()}
    assert cells['1']['ROUGE-1|StorySumm|Spearman'] == .25 and cells['1']['BARTScore|FABLES|Kendall'] == -.22
    assert cells['2']['B|FABLES|Kendall'] == .13
    assert cells['3']['LED|MENSA|R-1'] == 17.46 and cells['3']['LED|MovieSum|R-L'] == .28
    assert cells['3']['2nd iteration|MovieSum|NFS'] == 92.04
    assert cells['6']['LED|challenging|NFS'] == 11.70 and cells['6']['1st iteration|challenging|R-L'] == 14.08
    assert cells['4']['moderate|Spearman|high'] == .43 and cells['5']['ours|BS_r'] == 95.68
    assert cells['7']['FActScore|factuality'] == 4.6 and cells['7']['NFS|graph'] == 1.17
    assert cells['7']['FActScore|graph'] is None and cells['8']['Perturbed|NFS'] == 40.81
    assert sum(x for cell, x in cells['9'].items() if cell.endswith('verdict')) == 10
    quality = printed_quality() # sums down the columns, added up on paper
    assert quality.loc['MENSA', 'R-1'].sum() == pytest.approx(205.40)
    assert quality.loc['challenging', 'NFS'].sum() == pytest.approx(503.09)

@pytest.mark.parametrize('tau, rho', [(.1, .1495), (.2, .2963), (.3, .4373), (1, 1), (0, 0)])
def test_conversion(tau, rho): assert spearman_of(tau) == pytest.approx(rho, abs=5e-5)

def test_conversion_by_simulation():
    "Greiner's and Kruskal's formulas on normal pairs."
    import numpy as np
    r = math.sin(math.pi*.3/2)
    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, r], [r, 1]], 20000).T
    assert scipy.stats.kendalltau(x, y).statistic == pytest.approx(.3, abs=.01)
    assert scipy.stats.spearmanr(x, y).statistic == pytest.approx(spearman_of(.3), abs=.015)

def test_strengths():
    assert [strength('Kendall', t) for t in (0, .09, .1, .2, .3, -.3, 1)] == ['very weak', 'very weak', 'weak',
                                                                              'moderate', 'strong', 'strong', 'strong']
    assert strength('Spearman', .43) == 'strong' and strength('Spearman', .43, printed=False) == 'moderate'
    assert strength('Spearman', .44, printed=False) == 'strong'

def test_coefficients_against_scipy():
    "p of a coefficient is that of data which have it."
    import numpy as np
    rng = np.random.default_rng(1)
    x = rng.permutation(96).astype(float); y = x + rng.normal(0, 60, 96)
    rho, tau = scipy.stats.spearmanr(x, y), scipy.stats.kendalltau(x, y, method='asymptotic')
    assert coefficient('Spearman', rho.statistic, 96).p == pytest.approx(rho.pvalue)
    assert coefficient('Kendall', tau.statistic, 96).p == pytest.approx(tau.pvalue)
    from factlib.validity.association import kendall, spearman
    assert coefficient('Spearman', rho.statistic, 96)[:2] == pytest.approx(spearman(x, y).ci, abs=1e-6)
    assert coefficient('Kendall', tau.statistic, 96)[:2] == pytest.approx(kendall(x, y).ci, abs=1e-6)
    table = coefficients()
    ours = table[(table.table == '1') & (table.measure == 'NFS')]
    assert (ours.p < 1e-4).all() and SUMMARIES == dict(StorySumm=32*3, FABLES=26*5)

def test_cost_and_gain():
    ratio = time_ratios().set_index('evaluator').ratio
    assert ratio['FActScore'] == pytest.approx((1.17 + 4.81)/4.6)
    assert ratio['LongDocFACTScore'] == pytest.approx(5.98/3.81) and ratio['Human'] == pytest.approx(5.98/132)
    assert multiples().of_factscore.tolist() == pytest.approx([.43/.19, .31/.13, .47/.16, .33/.09])
    assert multiples().of_best.tolist() == pytest.approx([.43/.31, .31/.22, .47/.24, .33/.16])

def test_audit(audit):
    off = audit[~audit.status.isin(['agrees', 'no_data'])].status
    assert off.to_dict() == {('4', 'moderate|Spearman|high'): 'rounding', ('4', 'strong|Spearman|low'): 'rounding',
                             ('6', 'GPT-4o-mini|challenging|BS_f1'): 'differs',
        ('abstract', 'computation, percent of the earlier'): 'differs'}
    assert list(audit.index) == [(name, cell) for name, table in published('narrativefactscore').items()
                                 for cell in table.cells]
    for section in ('section 1', 'section 4.4'):
        gains = audit.loc[section].query("cell.str.endswith('gain')")
        assert (gains.status == 'agrees').all()
        assert gains.by_definition.tolist() == pytest.approx([14.03, 2.05, .13, 12.26, 2.47, .21])
    assert audit.by_definition['section 5.3', 'challenging|NFS|gain'] == pytest.approx(93.22 - 81.30)
    assert audit.by_definition['7', 'Human|factuality'] == 11*60/5
    assert (audit.loc['2'].status == 'agrees').sum() == 4 and (audit.loc['7'].status == 'agrees').sum() == 4
    assert audit.status['1', 'ROUGE-L|StorySumm|Kendall'] == 'no_data'
    assert 'data folder' in audit.note['1', 'ROUGE-L|StorySumm|Kendall']

def test_remarks(audit):
    same = audit[audit.note.str.contains('all 200 films')]
    assert [cell.split('|')[::2] for _, cell in same.index] == [['TextRank', m]
                                                                for m in ('R-1', 'R-L', 'BS_p', 'BS_r',
                                                                          'BS_f1')] + [['1st iteration', 'BS_r']]
    assert len(repeated_cells()) == 6
    assert audit.note.str.contains("last film's").sum() == 21
    assert 'A tenth of ROUGE-1' in audit.note['3', 'LED|MovieSum|R-L']
    assert '2.3 to 3.7' in audit.note['abstract', 'times the correlation']
    assert '5.98' in audit.note['abstract', 'computation, percent of the earlier']
    assert audit.note.str.contains('retrieval by characters').sum() == 4 and len(remarked()) >= 21 + 6

def test_f1():
    gaps = f1_gaps()
    p, r = 58.37, 59.36
    assert gaps.gap['challenging', 'GPT-4o-mini'] == pytest.approx(2*p*r/(p + r) - 58.53) and (gaps.gap > -.01).all()
    assert gaps.gap.drop(('challenging', 'GPT-4o-mini')).max() < .27 # broken summaries of LED
    import numpy as np
    rng = np.random.default_rng(2) # the spread that a gap tells: of 4,000 made-up films
    precision, recall = 60 + rng.normal(0, 3, 4000), 60 + rng.normal(0, 3, 4000)
    f1 = (2*precision*recall/(precision + recall)).mean()
    of_means = 2*precision.mean()*recall.mean()/(precision.mean() + recall.mean())
    assert 2*math.sqrt((of_means - f1)*60) == pytest.approx((precision - recall).std(), rel=.02)

def test_steps():
    falls = steps().query('gain < 0')
    assert list(zip(falls.dataset, falls.measure, falls.gain)) == [('MENSA', 'BS_p', -.05),
                                                                   ('MENSA', 'BS_r', -.01),
                                                                   ('MENSA', 'BS_f1', -.04),
                                                                   ('challenging', 'R-L', -.04),
                                                                   ('challenging', 'BS_r', -.06)]

def test_claims():
    table = claims()
    assert table.holds.tolist() == [3, 4, 1, 0, 8, 6, 4, 57, 17, 0, 0]
    assert table.of.tolist() == [4, 4, 4, 1, 12, 12, 4, 63, 21, 3, 2]
    assert '18.39 and 7.85' in table.against.iloc[-1] and facts_per_sentence(.8, .6) == pytest.approx(4) # one of four

@needs_storysumm
def test_rouge_on_storysumm():
    "The six cells to four digits, and against rouge-score where it is installed."
    examples = storysumm_examples()
    cells = rouge_cells(examples)
    expected = [.2475, .1773, .2974, .2169, .3100, .2247]
    assert len(examples) == 96 and len({e.group for e in examples}) == 32
    assert [c.definition for c in cells.values()] == pytest.approx(expected, abs=6e-5)
    rouge_score = pytest.importorskip('rouge_score.rouge_scorer')
    scorer = rouge_score.RougeScorer(['rougeL'], use_stemmer=True)
    f = [scorer.score(e.source, e.target)['rougeL'].fmeasure for e in examples]
    assert scipy.stats.spearmanr(f, [e.truth for e in examples]).statistic == pytest.approx(
        cells['ROUGE-L|StorySumm|Spearman'].definition)
    audit = narrativefactscore_audit()
    assert (audit[audit.cell.str.match('ROUGE-.*StorySumm')].status == 'agrees').sum() == 6

@needs_storysumm
def test_other_readings_of_the_human_score_fail():
    "The summary's own label gives other coefficients."
    import pandas as pd
    from dataclasses import replace
    labels = dict(pd.read_parquet(data_home()/'storysumm'/'summaries.parquet')[['id', 'label']].itertuples(index=False))
    cells = rouge_cells([replace(e, truth=labels[e.id]) for e in storysumm_examples()])
    assert [round(c.definition, 2) for cell, c in cells.items() if cell.endswith('Spearman')] == [.03, .11, .10]
