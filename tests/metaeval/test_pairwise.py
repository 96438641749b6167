"How often the better text scores higher: against oracles, by hand, and with opposite data for each sentence."
import math
import random
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy

from factlib.benchmarks.base import BENCHMARKS, Benchmark
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import EVALUATORS
from factlib.metaeval.advice import advice_in_short, advice_sentences, made_findings, which_evaluator
from factlib.metaeval.pairwise import by_question, contest, model_findings, model_tests, truth_ranks
from factlib.metaeval.matrix import (MADE_ON, false_alarms, judging_costs, matrix_columns, matrix_pairs, rater_alpha,
                                     trust_matrix)
from factlib.validity.detection import auc, auc_test

def texts(truths, groups=None, **more):
    return [Example(f'e{i}', target='x', truth=t, group=None if groups is None else str(groups[i]), **more)
            for i, t in enumerate(truths)]

def test_labels_without_groups_are_the_auc():
    rng = random.Random(0)
    for trial in range(30):
        truths = ['good' if rng.random() < .5 else 'bad' for _ in range(20)] + ['good', 'bad']
        values = [rng.choice([0, 1, 2, None]) for _ in truths]
        r = contest(texts(truths), 'good').higher({f'e{i}': v for i, v in enumerate(values)})
        oracle = auc([v for v, t in zip(values, truths) if t == 'good'],
                     [v for v, t in zip(values, truths) if t == 'bad'])
        assert r.estimate == pytest.approx(oracle.estimate)
        assert r.n == sum(v is not None for v, t in zip(values, truths)
                          if t == 'good')*sum(v is not None for v, t in zip(values, truths) if t == 'bad')

def test_scores_without_ties_are_half_of_tau_and_a_half():
    rng = np.random.default_rng(1)
    for _ in range(10):
        x, y = rng.normal(size=15), rng.permutation(15).astype(float)
        r = contest(texts(list(y))).higher({f'e{i}': v for i, v in enumerate(x)})
        assert r.estimate == pytest.approx(.5 + scipy.stats.kendalltau(x, y).statistic/2)
        worst = contest(texts(list(y)), good='0').higher({f'e{i}': v for i, v in enumerate(x)}) # 0 is the best level
        assert worst.estimate == pytest.approx(1 - r.estimate)

def brute(examples, ranks, values):
    "The mean over groups of the share of pairs within them, by loops."
    groups = {}
    for a in examples:
        for b in examples:
            if a.group == b.group and ranks[a.id] > ranks[b.id] and None not in (values[a.id], values[b.id]):
                groups.setdefault(a.group, []).append((values[a.id] > values[b.id]) + .5*(values[a.id] == values[b.id]))
    return sum(sum(x)/len(x) for x in groups.values())/len(groups), sum(map(len, groups.values()))

def test_within_groups_by_loops():
    rng = random.Random(2)
    for _ in range(20):
        examples = texts([rng.randint(0, 3) for _ in range(40)], groups=[rng.randint(0, 5) for _ in range(40)])
        values = {e.id: rng.choice([0, 1, 2, 3, None]) for e in examples}
        made, ranks = contest(examples), truth_ranks(examples)
        r = made.higher(values)
        assert made.within
        assert (r.estimate, r.n) == (pytest.approx(brute(examples, ranks, values)[0]),
                                     brute(examples, ranks, values)[1])
        low, high = made.bounds(values)
        assert low - 1e-12 <= r.estimate*0 + low <= high
        assert low <= brute(examples, ranks,
                            {i: v if v is not None else 9 for i, v in values.items()})[0] <= high + 1e-12

def test_each_group_counts_the_same_and_levels_part_them():
    many = texts([1]*9 + [0], groups=['a']*10) # nine pairs of one group
    few = [Example('f1', target='x', truth=1, group='b'), Example('f0', target='x', truth=0, group='b')]
    values = {e.id: float(e.truth) for e in many} | dict(f1=0, f0=1)
    assert contest(many + few).higher(values).estimate == .5
    lengths = [Example(f'{v}/{l}', target='x', truth=v, group='g', level=l)
               for v in ('gold', 'spoilt') for l in ('2000', 'full')]
    pairs = contest(lengths, 'gold')
    assert [(pairs.ids[b], pairs.ids[w])
            for b, w in zip(pairs.better, pairs.worse)] == [('gold/2000', 'spoilt/2000'), ('gold/full', 'spoilt/full')]

def test_a_pair_of_the_benchmarks_own_goes_before_groups():
    pairs = [Example(f'{p}{s}', target='x', truth=t, group='g', meta=dict(pair=p))
             for p in 'xy' for s, t in (('A', 'better'), ('B', 'worse'))]
    made = contest(pairs, 'better')
    assert {(made.ids[b], made.ids[w]) for b, w in zip(made.better, made.worse)} == {('xA', 'xB'), ('yA', 'yB')}

def test_the_difference_is_a_t_over_group_means():
    """Of differences with mean d and standard error s: Wilson's t of the share u = (1 + d)/2 against 1/2, whose error
    is s/2: (u - 1/2)/sqrt(1/4/n) with n = u(1 - u)/(s/2)^2, which is d sqrt(1 - d^2)/s."""
    rng = np.random.default_rng(3)
    examples = texts([1, 0]*12, groups=np.repeat(np.arange(12), 2))
    a, b = ({e.id: v for e, v in zip(examples, rng.normal(size=24))} for _ in 'ab')
    wins = lambda values: np.array([float(values[f'e{2*i}'] > values[f'e{2*i + 1}']) for i in range(12)])
    r, d = contest(examples).difference(a, b), wins(a) - wins(b)
    by_hand = d.mean()*np.sqrt(1 - d.mean()**2)/scipy.stats.sem(d)
    assert r.estimate == pytest.approx(d.mean()) and r.df == 11
    assert (r.statistic, r.p) == (pytest.approx(by_hand), pytest.approx(2*scipy.stats.t.sf(abs(by_hand), 11)))
    less = contest(examples).difference(a, b, 'less').p
    assert less == pytest.approx(scipy.stats.t.cdf(by_hand, 11))
    assert contest(examples).difference(a, b, 'greater').p == pytest.approx(1 - less)

def test_all_groups_alike_are_tested_by_signs():
    "Ten groups show the same difference: of 2^10 signs two are as extreme. Of four, two of 2^4: that shows nothing."
    for groups, p, beyond in ((10, 2/2**10, True), (4, 2/2**4, False)):
        examples = texts([1, 0]*groups, groups=np.repeat(np.arange(groups), 2))
        values, ties = {e.id: float(e.truth) for e in examples}, {e.id: 0. for e in examples}
        r = contest(examples).difference(values, ties)
        assert (r.estimate, r.p, r.kind) == (.5, pytest.approx(p), 'flips')
        assert (r.low > 0) == beyond and r.low < .5 < r.high
        back = contest(examples).difference(ties, values)
        assert (back.p, back.ci) == (r.p, tuple(pytest.approx(-x) for x in r.ci[::-1]))

def test_leaving_out_a_group_is_the_share_without_its_texts():
    "Against the contest of the texts that are left, across groups and within."
    rng = np.random.default_rng(8)
    for within in (False, True):
        groups = np.repeat(np.arange(8), 3)
        truths = rng.integers(0, 3, 24).tolist() if within else list(np.where(groups % 2, 'good', 'bad'))
        examples = texts(truths, groups=groups)
        values = {e.id: rng.choice([0., 1., 2., np.nan]) for e in examples}
        made = contest(examples, None if within else 'good')
        assert made.within == within
        estimate, without, held = made.left_out(made.wins(values))
        assert estimate == pytest.approx(made.share(values)) and held.sum() == pytest.approx(1)
        pairs = ~np.isnan(made.wins(values))
        used = sorted({made.groups[i] for i in (*made.better[pairs], *made.worse[pairs])})
        for g, share in zip(used, without):
            rest = {e.id: values[e.id] for e in examples if int(e.group) != int(examples[0].group) + g}
            assert share == pytest.approx(made.share(rest))

def test_all_pairs_are_the_differences_one_by_one():
    rng = np.random.default_rng(9)
    examples = texts(['good', 'bad']*20, groups=np.arange(40))
    values = {name: {e.id: rng.choice([0., 1., 2., np.nan], p=[.3, .3, .3, .1*1]) if name != 'whole' else rng.normal()
                     for e in examples} for name in ('a', 'b', 'whole')}
    made = contest(examples, 'good')
    table = made.all_pairs(values)
    assert table[['first', 'second']].values.tolist() == [['a', 'b'], ['a', 'whole'], ['b', 'whole']]
    for row in table.itertuples():
        r = made.difference(values[row.first], values[row.second])
        assert (row.difference, row.p, row.ci_low, row.pairs, row.groups, row.df) == (
            pytest.approx(r.estimate), pytest.approx(r.p), pytest.approx(r.low), r.n, r.groups, pytest.approx(r.df))
        assert row.error == pytest.approx(abs(row.difference)*np.sqrt(1 - row.difference**2)/abs(r.statistic))
    assert made.all_pairs(dict(a=values['a'], none={})).empty

def test_the_difference_across_groups_is_that_of_the_aucs():
    rng = np.random.default_rng(4)
    examples = texts(['good', 'bad']*20, groups=np.arange(40))
    truth = np.array([e.truth == 'good' for e in examples])
    a, b = truth + rng.normal(size=40), rng.normal(size=40)
    r = contest(examples, 'good').difference(*({e.id: v for e, v in zip(examples, x)} for x in (a, b)))
    delong = auc_test(a[truth], a[~truth], b[truth], b[~truth])
    assert r.estimate == pytest.approx(delong.estimate)
    row, = contest(examples, 'good').all_pairs(dict(a={e.id: v for e, v in zip(examples, a)},
                                                    b={e.id: v for e, v in zip(examples, b)})).itertuples()
    assert row.error == pytest.approx(delong.estimate/delong.statistic, rel=.05) # z is the estimate over its error
    # twenty groups on a side
    assert r.df == pytest.approx(np.sqrt(39*19)) and r.p == pytest.approx(
        2*scipy.stats.t.sf(row.difference*np.sqrt(1 - row.difference**2)/row.error, r.df))

def test_false_positives_are_as_rare_as_they_should_be():
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        examples = texts(['good', 'bad', 'bad']*10, groups=np.arange(30))
        a, b = ({e.id: v for e, v in zip(examples, rng.normal(size=30))} for _ in 'ab')
        hits += contest(examples, 'good').difference(a, b).p < .05
    assert hits <= 20 # 5 % of 200 is 10; 20 or more has a chance of 0.3 %

def judged(benchmark, **evaluators):
    "Judgements by functions of an example."
    rows = [dict(evaluator=name, benchmark=benchmark.name, example_id=e.id,
                 group=e.group, value=f(e), absence=None if f(e) is not None else 'inapplicable', seconds=.1,
                 requests=0, prompt_tokens=0, completion_tokens=0) for name, f in evaluators.items() for e in benchmark]
    return pd.DataFrame(rows)

TEN = Benchmark('ten', texts(['true', 'lie']*10, groups=np.repeat(np.arange(10), 2)),
                'label', '', good='true', question='order')
right, wrong, flat = (lambda e: float(e.truth == 'true')), (lambda e: float(e.truth != 'true')), (lambda e: 1.)

def advised(frame, benchmarks, **options):
    columns, left_out = matrix_columns(frame, benchmarks)
    matrix = trust_matrix(frame, columns, **options)
    return matrix, advice_sentences(matrix, matrix_pairs(columns))

def test_sentence_with_one_that_is_right():
    matrix, said = advised(judged(TEN, path=right, length=flat, random=wrong), [TEN])
    assert said['order'] == (
        'Order: to see whether events are in order, '
        'use path: it scores the better text higher in 100% of pairs (the mean of '
        '1 benchmark, 10 groups; rank 1 of 3), and beats every baseline (length and random; Benjamini-Hochberg over 1 '
        'test). All 2 others are shown to be worse (Benjamini-Hochberg over 3 pairs). No judge is on record for it.')
    assert advice_in_short(matrix) == (
        'Use path for order (100%, rank 1 of 3): shown to beat every baseline (Benjamini-Hochberg over 1 test); the share '
        'is that of pairs in which the better text scores higher, 50% being chance.')
    rows = matrix.set_index('evaluator')
    assert rows.beats_floors.to_dict() == dict(path='yes', length='a baseline', random='a baseline')
    assert rows[['rank_low', 'rank_high', 'place']].T.to_dict('list') == dict(path=[1, 1, 1], length=[2, 2, 2],
                                                                             random=[3, 3, 3])

def test_sentence_with_opposite_data():
    matrix, said = advised(judged(TEN, path=wrong, length=flat, random=right), [TEN])
    assert said['order'] == (
        'Order: to see whether events are in order, '
        'nothing that can be run here is shown to beat every baseline (random and '
        'length; Benjamini-Hochberg over 1 test); the baseline random comes first (100%, the mean of 1 benchmark, 10 '
        'groups; rank 1 of 3). All 2 others are shown to be worse (Benjamini-Hochberg over 3 pairs). No judge is on '
        'record for it.')
    assert advice_in_short(matrix) == ('Nothing that can be run here is shown to beat every baseline for order (the baseline '
                                       'random comes first, 100%, rank 1 of 3).')

def test_recorded_judges_have_ranks_and_are_not_advised():
    matrix, said = advised(judged(TEN, path=wrong, gpt=right, length=flat), [TEN], recorded=('gpt',))
    ranks = matrix.set_index('evaluator')[['rank_low', 'rank_high', 'rank_of', 'overall_low', 'overall_of']]
    assert ranks.loc['gpt'].tolist()[:3] == [1, 1, 3] and ranks.loc['gpt'].isna().tolist() == [False]*3 + [True]*2
    assert ranks.loc['length'].tolist() == [2, 2, 3, 1, 2] and matrix.evaluator.tolist() == ['gpt', 'length', 'path']
    assert said['order'] == (
        'Order: to see whether events are in order, nothing that can be run here is shown to beat every baseline (length; '
        'Benjamini-Hochberg over 1 test); the baseline length comes first (50%, the mean of 1 benchmark, 10 groups; rank '
        '1 of 2), no more than chance. The other is shown to be worse (Benjamini-Hochberg over 1 pair). First of '
        'the judges on record: gpt on ten (100%, rank 1 of 3, beats every baseline, shown to be 50 points above length) '
        '(Benjamini-Hochberg over 3 pairs).')

def test_sentence_where_raters_disagree():
    examples = [Example(f'{g}{t}', target='x', truth=float(t), group=str(g),
                        meta=dict(raters=dict(a=float((g + t) % 2), b=float((g + t + 1) % 2))))
                for g in range(10) for t in (0, 1)]
    b = Benchmark('b', examples, 'score', '', question='quality')
    frame = judged(b, path=lambda e: e.truth, length=flat)
    matrix, said = advised(frame, [b])
    assert 'raters hardly agree' in matrix.note[0]
    assert said['quality'] == ('Quality: to agree with people about quality, '
                               'nothing can be told of what can be run: no scores, '
                               'or raters that hardly agree. No judge is on record for it.')
    assert advice_in_short(matrix) == 'Nothing can be told of quality.'
    agreeing = Benchmark('b', [Example(**e.to_dict() | dict(meta=dict(raters=dict(a=e.truth, b=e.truth))))
                               for e in examples], 'score', '', question='quality')
    matrix, said = advised(frame, [agreeing])
    assert rater_alpha(agreeing.examples).estimate == 1 and matrix.note[0] == ''
    assert said['quality'].startswith('Quality: to agree with people about quality, use path: it scores')

def test_few_groups_show_nothing():
    "Four groups that agree: two of sixteen signs."
    four = Benchmark('four', TEN.examples[:8], 'label', '', good='true', question='order')
    matrix, said = advised(judged(four, path=right, length=flat), [four])
    rows = matrix.set_index('evaluator')
    assert rows.beats_floors.to_dict() == dict(path='not shown', length='a baseline')
    assert rows.p_floor['path'] == rows.q_floor['path'] == 1/2**4 and set(rows.rank_high) == {2}
    assert said['order'] == (
        'Order: to see whether events are in order, nothing that can be run here is shown to beat every baseline (length; '
        'Benjamini-Hochberg over 1 test); path comes first (100%, the mean of 1 benchmark, 4 groups; rank 1 to 2 of 2'
        '). The other is not shown to be worse; length may be as good (Benjamini-Hochberg over 1 pair). No judge is on '
        'record for it.')

def test_what_no_benchmark_shows_alone_may_be_shown_together():
    """Two benchmarks of six groups. On either the evaluator has five groups right and one wrong against ties: the
    differences 1/2 and -1/2 have the mean 1/3 and the standard error 1/6. Together the error is (1/6)/sqrt(2), t 2.83
    with ten degrees of freedom."""
    six = [Benchmark(name, TEN.examples[:12], 'label', '', good='true', question='order') for name in ('one', 'two')]
    mostly = lambda e: right(e) if int(e.group) else wrong(e)
    frame = pd.concat([judged(b, path=mostly, length=flat) for b in six], ignore_index=True)
    matrix, said = advised(frame, six)
    alone = (1/3)*np.sqrt(8/9)/(1/6) # within limits: Wilson's
    path = matrix[matrix.evaluator == 'path']
    assert path.p_floor.tolist() == pytest.approx([scipy.stats.t.sf(alone, 5)]*2) and path.p_floor.iloc[0] > .05
    assert set(path.beats_floors) == {'not shown'} and set(path.rank_low) == {1}
    assert path.overall_q_floor.tolist() == pytest.approx([scipy.stats.t.sf(2**1.5, 10)]*2)
    assert ('use path: it scores the better text higher in 83% of pairs (the mean of 2 benchmarks, 12 groups; rank 1 '
            'of 2), and beats every baseline (length;') in said['order']

def test_what_an_evaluator_was_made_on_is_nobodys_best_and_no_advice():
    tuned = Benchmark('holmes_order', TEN.examples, 'label', '', good='true', question='order')
    frame = judged(tuned, order_path=right, share=wrong, length=flat)
    matrix, said = advised(frame, [tuned])
    rows = matrix.set_index('evaluator')
    assert rows.made_on.to_dict() == dict(order_path='settings chosen among some 300 on these stories',
                                          share='', length='')
    assert rows.rank_low.dropna().to_dict() == dict(length=1, share=2) and set(rows.rank_of.dropna()) == {2}
    assert rows.beats_floors['order_path'] == 'made there' and len(matrix_pairs(matrix_columns(frame, [tuned])[0])) == 1
    assert said['order'] == (
        'Order: to see whether events are in order, nothing that can be run here is shown to beat every baseline (length; '
        'Benjamini-Hochberg over 1 test); the baseline length comes first (50%, the mean of 1 benchmark, 10 groups; rank '
        '1 of 2), no more than chance. The other is shown to be worse (Benjamini-Hochberg over 1 pair). No judge is '
        'on record for it.')
    assert made_findings(matrix) == ['Order: Higher, but not counted: order_path on holmes_order (100%): settings '
                                     'chosen among some 300 on these stories.']
    # the same texts under a name that it wasn't tuned on
    elsewhere = Benchmark('ten', TEN.examples, 'label', '', good='true', question='order')
    assert advised(judged(elsewhere, order_path=right, share=wrong, length=flat),
                   [elsewhere])[1]['order'].startswith('Order: to see whether events are in order, use order_path:')
    other, said = advised(judged(tuned, order_path=wrong, share=right, length=flat), [tuned])
    assert ', use share: ' in said['order'] and made_findings(other) == []
    assert which_evaluator(matrix, judging_costs(frame)).evaluator.tolist() == ['length']

def test_a_benchmark_it_was_made_on_is_taken_from_both_counts(monkeypatch):
    turns = dict.fromkeys(('begin_cmu', 'begin_tc'), 'fitted on these turns')
    monkeypatch.setitem(MADE_ON, 'a_fit', turns)
    three = [Benchmark(name, TEN.examples, 'label', '', good='true', question='facts')
             for name in ('begin_cmu', 'begin_tc', 'faithdial_audit')]
    frame = pd.concat([judged(b, a_fit=right if b.name != 'faithdial_audit' else flat, length=flat)
                       for b in three], ignore_index=True)
    matrix, said = advised(frame, three)
    row = which_evaluator(matrix, judging_costs(frame)).set_index('evaluator').loc['a_fit']
    assert (row['mean'], row.tested, row['of'], row.beats, row.beats_all) == (.5, 1, 1, 0, False)
    assert 'begin' not in row.reason
    assert made_findings(matrix) == ['Facts: Higher, but not counted: a_fit on begin_cmu (100%) and begin_tc '
                                     '(100%): fitted on these turns.']

PAIRS = pd.DataFrame(columns=['benchmark', 'first', 'second', 'difference', 'q', 'family'])
THREE_OF_TEN = lambda e: right(e) if int(e.group) < 3 else None

@pytest.mark.parametrize('evaluators, recorded, parts', [
    (dict(path=right), (), ['path comes first (100%, the mean of 1 benchmark, 10 groups; rank 1 of 1); no baseline could '
                            'be compared, so counting words may do as well. Nothing else could be compared with it.']),
    (dict(length=right), (), ['only baselines could be compared; length comes first (100%', 'Nothing else could be']),
    (dict(path=flat, share=flat), (), ['path comes first (50%', 'rank 1 to 2 of 2), no more than chance; no baseline',
                                       'The other is not shown to be worse; share may be as good']),
    (dict(path=right, share=right, length=flat), (), [
        'use path: it', 'rank 1 to 2 of 3)', 'beats every baseline (length; Benjamini-Hochberg over 2 tests). Of 2 others '
        '1 is shown to be worse; share may be as good (Benjamini-Hochberg over 3 pairs).']),
    (dict(path=right, share=wrong, length=right), (), ['the baseline length comes first (100%', 'rank 1 to 2 of 3). Of 2 '
                                                       'others 1 is shown to be worse; path may be as good']),
    (dict(path=THREE_OF_TEN), (), ['nothing that can be run scored half of the texts of half of the benchmarks. No j']),
    (dict(path=lambda e: None), (), ['nothing can be told of what can be run: no scores, or raters']),
    (dict(path=right, gpt=right, length=flat), ('gpt',), ['gpt on ten (100%, rank 1 to 2 of 3, beats every baseline, not '
                                                          'shown to differ from path)']),
    (dict(path=right, gpt=wrong, length=flat), ('gpt',), ['gpt on ten (0%, rank 3 of 3, not shown to beat every baseline, '
                                                          'shown to be 100 points below path)']),
    (dict(gpt=right), ('gpt',), ['nothing can be told of what can be run', 'gpt on ten (100%, rank 1 of 1, there was '
                                 'no baseline to compare with)', 'Benjamini-Hochberg, no test could be done'])])
def test_three_sentences_are_true_of_whatever_there_is(evaluators, recorded, parts):
    matrix, said = advised(judged(TEN, **evaluators), [TEN], recorded=recorded)
    assert all(part in said['order'] for part in parts), said['order']
    assert said['order'].count('. ') <= 2 and 'nan' not in said['order'] and 'None' not in said['order']
    if 'use path' in said['order']: assert advice_in_short(matrix).startswith('Use path for order')
    elif 'nothing can be told' in said['order'] or 'half of the texts' in said['order']:
        assert advice_in_short(matrix) == 'Nothing can be told of order.'
    else: assert 'Nothing that can be run here is shown to beat every baseline for order (' in advice_in_short(matrix)

def test_one_group_can_not_be_tested():
    one = Benchmark('one', TEN.examples[:2], 'label', '', good='true', question='facts')
    _, said = advised(judged(one, path=right, share=wrong, length=flat), [one])
    assert said['facts'] == (
        'Facts: to tell true from false, '
        'nothing could be tested against the baselines (length); path comes first (100%, the '
        'mean of 1 benchmark, 1 group; rank 1 to 3 of 3). No pair of the 3 could be tested. No judge is on record for '
        'it.')

def test_a_better_one_may_stand_before_one_that_beats_the_floors():
    "The best of those that beat every baseline is named, and that another is shown to be better."
    matrix, _ = advised(judged(TEN, path=right, share=right, length=flat), [TEN])
    q = dict(path=.2, share=.01, length=math.nan)
    changed = matrix.assign(overall_low=[1 if e == 'path' else 2 for e in matrix.evaluator], overall_high=3,
                            overall_q_floor=[q[e] for e in matrix.evaluator])
    said = advice_sentences(changed, PAIRS)['order']
    assert ', use share: ' in said
    assert ' none is shown to be worse, 1 to be better; nobody is shown to be better than path (' in said

def test_an_empty_matrix_says_nothing():
    matrix, _ = advised(judged(TEN, path=right, length=flat), [TEN])
    assert advice_sentences(matrix[:0], PAIRS) == {} and advice_in_short(matrix[:0]) == ''
    assert made_findings(matrix[:0]) == []

def test_every_declared_benchmark_and_evaluator_is_one():
    assert set(MADE_ON) <= set(EVALUATORS) and {b for of in MADE_ON.values() for b in of} <= set(BENCHMARKS)

def test_a_missing_field_is_a_cell_of_its_own():
    matrix, _ = advised(judged(TEN, path=right, rouge1=lambda e: None, length=flat), [TEN])
    row = matrix.set_index('evaluator').loc['rouge1']
    assert math.isnan(row.higher) and row.note == 'inapplicable: 20'
    assert (row.scored, row.asked, row.bound_low, row.bound_high) == (0, 20, 0, 1) and row.beats_floors == 'a baseline'
    assert pd.isna(row.rank_low)

def test_q_is_over_a_benchmarks_question():
    "Two benchmarks, on either of which two evaluators meet the baseline: by signs 1/2^10 (right in all ten), and 1."
    two = [Benchmark(name, TEN.examples, 'label', '', good='true', question='order') for name in ('one', 'two')]
    frame = pd.concat([judged(b, path=right, share=wrong, length=flat) for b in two], ignore_index=True)
    matrix, _ = advised(frame, two)
    path = matrix[matrix.evaluator == 'path']
    assert path.p_floor.tolist() == pytest.approx([1/2**10]*2)
    assert path.q_floor.tolist() == pytest.approx([2/2**10]*2)
    assert set(path.floor_tests) == {2} and set(matrix.rank_tests) == {3}
    pairs = matrix_pairs(matrix_columns(frame, two)[0])
    for _, own in pairs.groupby('benchmark'):
        assert own.q.tolist() == pytest.approx(scipy.stats.false_discovery_control(own.p).tolist())

def test_what_was_not_asked_is_not_missing():
    "A judge on record has all twenty texts, another was asked about the first four, and refused one."
    frame = judged(TEN, gpt=right, path=lambda e: right(e) if e.id != 'e0' else None)
    frame = frame[(frame.evaluator == 'gpt') | frame.example_id.isin(['e0', 'e1', 'e2', 'e3'])]
    matrix, _ = advised(frame, [TEN], recorded=('gpt',))
    row = matrix.set_index('evaluator').loc['path']
    assert (row.asked, row.scored, row.pairs, row.pairs_scored) == (4, 3, 2, 1)
    assert (row.bound_low, row.bound_high) == (.5, 1)

def test_controls_are_not_among_the_pairs_and_have_a_table():
    flashbacks = [Example(f'f{g}', target='x', truth='true', group=str(g), variant='flashback') for g in range(10)]
    b = Benchmark('b', TEN.examples + flashbacks, 'label', '', good='true', question='order')
    frame = judged(b, path=lambda e: None if e.truth is None else float(e.truth == 'true' and e.variant is None),
                   blind=flat)
    matrix, _ = advised(frame, [b])
    assert set(matrix.asked) == {20} and matrix.set_index('evaluator').higher.to_dict() == dict(path=1, blind=.5)
    alarms = false_alarms(frame, [b]).set_index('evaluator')
    assert alarms.alarms.to_dict() == dict(path=1, blind=.5) and alarms.ties.to_dict() == dict(path=0, blind=1)
    assert alarms.worse_lower.to_dict() == dict(path=1, blind=.5)

def test_a_group_whose_original_has_no_score_raises_no_alarm():
    told = [Example('t', target='x', truth='true', group='g'), Example('l', target='x', truth='lie', group='g'),
            Example('f', target='x', truth='true', group='g', variant='flashback')]
    b = Benchmark('told', told, 'label', '', good='true', question='order')
    assert false_alarms(judged(b, blind=lambda e: None if e.id == 't' else 1.), [b]).empty
    row = false_alarms(judged(b, one=lambda e: dict(t=3., f=2., l=1.)[e.id]), [b]).iloc[0]
    assert (row.control, row.alarms, row.worse_lower, row.scored, row.ties) == ('flashback', 1, 1, 1, 0)

def test_damage_has_two_questions():
    damaged = [Example(f'{g}/{v}/{l}', target='x', truth='gold' if v == 'gold' else 'bad', group=g, variant=v, level=l)
               for g in 'abcdefgh' for v in ('gold', '41', '17') for l in ('2000', 'full')]
    b = Benchmark('d', damaged, 'label', '', good='gold', question='damage')
    frame = judged(b, typos=lambda e: float(e.variant != '41')).assign(fluency=None, coherence=None)
    matrix, _ = advised(frame, [b])
    assert dict(zip(matrix.benchmark, matrix.higher)) == {'d: fluency': 1., 'd: coherence': .5}
    parts = frame.assign(fluency=[float(e.variant == 'gold') for e in b],
                         coherence=[-float(e.variant == 'gold') for e in b])
    matrix, _ = advised(parts, [b])
    assert dict(zip(matrix.benchmark, matrix.higher)) == {'d: fluency': 1., 'd: coherence': 0.} # each by its own part
    assert [q for q, _ in by_question(b)] == ['fluency', 'coherence']

def test_bad_input():
    with pytest.raises(BadInput, match='lacks the column'): matrix_columns(pd.DataFrame(dict(value=[1])), [TEN])
    with pytest.raises(BadInput, match='Nothing to put'): trust_matrix(pd.DataFrame(), [])
    assert matrix_columns(judged(TEN, path=right), [Benchmark('ten', TEN.examples[:1], 'label', '')])[1]

def test_hundreds_of_texts_are_no_trouble():
    rng = np.random.default_rng(6)
    examples = texts(list(rng.normal(size=600)), groups=np.arange(600))
    made, values = contest(examples), {e.id: v for e, v in zip(examples, rng.normal(size=600))}
    assert 0.4 < made.higher(values).estimate < .6
    assert made.difference(values, {i: -v for i, v in values.items()}).n == 600*599//2

@pytest.mark.parametrize('seed', range(20))
def test_pairs_across_groups_without_each_group(seed):
    "A group is left out with all pairs of which it has a side; by brute force, with gaps and both sides in a group."
    rng = np.random.default_rng(seed)
    some = texts(rng.permutation(['good', 'bad']*10).tolist(), rng.integers(0, 14, 20).tolist())
    pairs = contest(some, 'good')
    wins = pairs.wins({e.id: None if rng.random() < .2 else float(rng.integers(0, 4)) for e in some})
    if pairs.within or np.isnan(wins).all(): return
    estimate, without, held = pairs.left_out(wins)
    known = [(pairs.groups[b], pairs.groups[w], x) for b, w, x in zip(pairs.better, pairs.worse, wins) if x == x]
    used = sorted({g for b, w, _ in known for g in (b, w)})
    rest = [[x for b, w, x in known if g not in (b, w)] for g in used]
    assert math.isclose(estimate, np.mean([x for *_, x in known]))
    assert np.allclose(without, [np.mean(x) if x else np.nan for x in rest], equal_nan=True)
    sides = [np.array([np.mean([pair[side] == g for pair in known]) for g in used]) for side in (0, 1)]
    assert math.isclose(np.sum(held**2), max(np.sum(x**2) for x in sides))

@pytest.mark.parametrize('refused, words', [([], 'the texts that two of them scored have too few sources'),
                                            (['e0', 'e1'], 'no two of them scored the same texts')])
def test_why_models_were_not_compared(refused, words):
    "On one source."
    both = texts(['true', 'false'], 'aa')
    judged = pd.DataFrame([dict(benchmark='b', evaluator=f'judge, {m}', example_id=e.id,
                                value=None if m == 'N' and e.id in refused else float(e.truth == 'true'))
                           for m in 'MN' for e in both])
    tests = model_tests(judged, dict(b=Benchmark('b', both, 'label', '', (), 'true', 'facts')),
                        {f'judge, {m}': 'judge' for m in 'MN'})
    sentence, = model_findings(tests)
    assert words in sentence

def pairs_of_models(benchmark, q, models='MNOPQ'):
    "Tests as of `model_tests`: who comes earlier is ahead."
    pairs = list(combinations(models, 2))
    return pd.DataFrame([dict(benchmark=benchmark, question='facts', evaluator='judge', first=f'judge, {a}',
                              second=f'judge, {b}', difference=.1, q=q, family=len(pairs), scored=9) for a, b in pairs])

def test_where_no_models_differ_is_one_sentence():
    told, = model_findings(pd.concat([pairs_of_models('here', .5), pairs_of_models('there', .3)]))
    assert told.startswith('On here (facts) and there (facts) no two models can be told apart as judge: q = 0.300 at least '
                           '(on each Benjamini-Hochberg over 10 tests).')

def test_of_many_differences_the_first_are_named():
    few, = model_findings(pairs_of_models('here', .01, 'MNO'))
    assert '3 of 3 pairs' in few and 'judge, M before judge, O (10 points, q = 0.010)' in few
    many, = model_findings(pairs_of_models('here', .01))
    assert '10 of 10 pairs' in many and many.endswith('ahead of others and behind nobody: judge, M.')
