"More findings on made-up tables: of the recordings, the prompts, the screening, trutheval and VISTA."
import pandas as pd
import pytest

from experiments.test_experiments_findings import said

def ends(frame, mean, half, **more):
    "The frame with a column `mean` and its interval of this half width."
    return frame.assign(mean=mean, ci_low=[m - half for m in mean], ci_high=[m + half for m in mean], **more)

def says(text, *words):
    for part in words: assert part in text, text

# What the recordings say

SAY = 'what_the_recordings_say'

@pytest.mark.parametrize('means, words', [
    ((-.3, -.2),
     'in 2 of 2 combinations of judge and fault ([17] and [43]; of [17] short texts also hold more per 1,000 tokens), '
     'and more in 0; for 0'),
    ((.3, .2), 'in 0 of 2 combinations of judge and fault, and more in 2; for 0'),
    ((.05, -.3), 'in 1 of 2 combinations of judge and fault ([43]), and more in 0; for 1 that can\'t be told')])
def test_whether_faults_are_noticed_less_in_full(means, words):
    table = pd.DataFrame(dict(variant=['17', '43'], task=['[17]', '[43]'],
                              evaluator='LI', p_holm=1., missing=0, asked=30))
    says(said(SAY, 'say-two-finding', length=ends(table, means, .1)), words)

@pytest.mark.parametrize('mean, word', [(-.3, 'less'), (.3, 'more'), (.05, 'neither shown')])
def test_differences_averaged_over_the_faults(mean, word):
    table = ends(pd.DataFrame(dict(faults=['all six'], evaluator=['LI'])), [mean], .1)
    from factlib.report.tables import format_estimate
    says(said(SAY, 'say-two-pooled-finding', over_faults=table, format_estimate=format_estimate),
         f']: {word} (points; 1 tests')

def gold(longer):
    rows = [dict(evaluator='LI', variant='gold', metric='fluency', level=level,
                 group=f'd{i}', value=4 + (longer*(1 + i % 2) if level == 'full' else i % 3/10))
            for i in range(8) for level in ('2000', 'full')]
    return pd.DataFrame(rows)

def test_what_untouched_texts_lose():
    says(said(SAY, 'say-gold', setups=dict(vanilla=gold(-.2))), 'Untouched texts score lower in full by 0.',
         'with LI (1 of 1 means')
    assert 'Untouched texts score lower' not in said(SAY, 'say-gold', setups=dict(vanilla=gold(.4)))

@pytest.mark.parametrize('first, last, words', [
    (-.2, -.2, 'JudgeMemo judges the two lengths more alike beyond [17] by LI: it changes how far'),
    (.2, .2, 'JudgeMemo judges the two lengths less alike beyond [17] by LI'),
    (-.2, -.05, 'That JudgeMemo judges the two lengths more alike is not shown beyond [17] by LI')])
def test_whether_a_memory_evens_out_lengths(first, last, words):
    from factlib.report.tables import format_estimate
    from factlib.report.words import by_interval, listed
    pooled = pd.DataFrame(dict(cases=['all cases', 'rest'], documents=30, p=.5))
    pooled = ends(pooled, [first, last], .1).rename(columns=dict(mean='change'))
    shrunk = pd.DataFrame(dict(variant=['17'], evaluator=['LI']))
    says(said(SAY, 'say-three-pooled-finding', pooled=pooled, shrunk=shrunk,
              steps=pd.DataFrame(), by_interval=by_interval, listed=listed, format_estimate=format_estimate), words)

@pytest.mark.parametrize('sd, picked, words',
                         [(0., -.3,
                           'untouched short text by LI (fluency); fluency 4.50, on the other 35 4.20 on average'),
                          (.2, -.1, 'short text by no judge')])
def test_documents_picked_for_a_score(sd, picked, words):
    picks = pd.DataFrame(dict(evaluator='LI', metric='fluency', documents=['picked', 'others'],
                              count=[30, 35], mean=[4.5, 4.2], std=[sd, .3]))
    drops = pd.DataFrame(dict(evaluator=['LI'], variant=['42'], level=['2000'], picked=[picked], others=[-.2]))
    text = said(SAY, 'say-picked-finding', picks=picks, drops=drops, shared=set(range(30)),
                alike=pd.Series([True]*14 + [False]*21))
    says(text, words, f'LI in {int(picked < -.2)} of 1 faults')
    assert ('[42] costs 0.30 points on the 30 documents and 0.20 on the others' in text) == (not sd)

def test_others_with_the_same_scores_are_counted():
    picks = pd.DataFrame(dict(evaluator='LI', metric=['fluency', 'fluency', 'coherence', 'coherence'],
                              documents=['picked', 'others']*2, count=[30, 35]*2,
                              mean=[4.5, 4.2, 4., 4.1], std=[0., .3]*2))
    drops = pd.DataFrame(dict(evaluator=['LI'], variant=['42'], level=['2000'], picked=[-.3], others=[-.2]))
    says(said(SAY, 'say-picked-finding', picks=picks, drops=drops, shared=set(range(30)),
              alike=pd.Series([True]*14 + [False]*21)), '14 of the others have both of these scores too')

@pytest.mark.parametrize('scored, words', [(56, 'at both lengths by LI and Q.'),
                                           (20, 'at both lengths by LI. Under JudgeMemo Q has 20 of 56 scores.')])
def test_whose_scores_are_in_the_picture(scored, words):
    "Two documents, six faults and the untouched text, two metrics, two lengths: 56 scores."
    memo = pd.DataFrame(dict(evaluator=['LI']*56 + ['Q']*56, value=[4.]*56 + [4.]*scored + [None]*(56 - scored)))
    judges = ['LI', 'Q'] if scored == 56 else ['LI']
    text = said(SAY, 'say-picture-finding', setups=dict(judgememo=memo),
                shared={'a', 'b'}, complete=['LI', 'Q'], judges=judges)
    says(text, 'at 2,000 tokens by LI and Q', words)
    assert text.endswith(words)

@pytest.mark.parametrize('ts, words',
                         [((-2., -1., .5, 0.),
                           '4 printed t of Eq 5.3, 2 say by the equation that the fault is noticed less in the whole '
                           'text, 1 that it is noticed more, and 1 neither'),
                          ((1., 2.),
                           ', 0 say by the equation that the fault is noticed less in the whole text, 2 that it is '
                           'noticed more, and 0 neither')])
def test_what_printed_signs_say(ts, words):
    printed = type('Table', (), dict(name='A.13', cells={f't|LI|{i}': t for i, t in enumerate(ts)}))()
    from experiments.test_experiments_findings import Run, sources
    from factlib.papers.judgememo.misprints import sign_readings
    cell = sources(SAY)['say-print'].replace("printed = published('judgememo')", '')
    run = Run()
    exec(cell, dict(printed={'A.13': printed, 'A.15': type('Table', (), dict(name='A.15', cells={}))()},
                    run=run, sign_readings=sign_readings))
    says(' '.join(run.said), words)

# JudgeMemo recomputed

def noticed(vanilla, memo):
    rows = [dict(setup=s, evaluator='LI', variant=v, t=-t, critical=1.7, ci_high=2.05 - t)
            for s, ts in (('vanilla', vanilla), ('vanilla_30', vanilla), ('judgememo', memo))
            for v, t in zip(range(6), ts)]
    return said('judgememo', 'jm-effect-finding', short=pd.DataFrame(rows),
                wanted=['LI'], TITLES=dict(vanilla='v', vanilla_30='v30', judgememo='J'), TASKS=dict.fromkeys(range(6)))

def test_who_notices_more_faults():
    """With 30 documents t lies beyond 1.70 one-sided and beyond 2.05 two-sided; t = 1.8 is noticed by the first test
    alone."""
    says(noticed([1, 1.8, 3, 3, 3, 3], [3]*6),
         'one prompt notices the fault at 2,000 tokens (interval below 0) in 4 of 6 combinations, JudgeMemo in 6 of 6; '
         'by the thesis\'s one-sided test in 5 and 6', 'do not show that one notices more')
    says(noticed([3]*6, [1]*5 + [1.8]),
         'in 6 of 6 combinations, JudgeMemo in 0 of 6; by the thesis\'s one-sided test in 6 and 1')

def moved(estimate, p_holm):
    change = ends(pd.DataFrame(dict(evaluator=['LI', 'Q'], variant=['17', '17'], p_holm=[p_holm, 1.])),
                  [estimate, .1], .2)
    return said('judgememo', 'jm-change-finding', change=change)

def test_whether_a_memory_changes_what_long_texts_hide():
    says(moved(.5, .01),
         'less is lost in the long text of [17] by LI (0.50 [0.30, 0.70] points), more of no fault; for the other 1 of '
         '2', 'No change is shown for [17] by Q (0.10')
    says(moved(-.5, .01), 'less is lost in the long text of no fault, more of [17] by LI (−0.50')
    says(moved(.5, .2), 'of no fault, more of no fault; for the other 2 of 2',
         'No change is shown for [17] by LI (0.50 [0.30, 0.70] points) and [17] by Q')

@pytest.mark.parametrize('memo, mean', [(-.5, .5), (-1.5, -.5)])
def test_the_change_is_of_the_same_document(memo, mean):
    """Vanilla loses 1 point less in the long text of each document, JudgeMemo .5 less or 1.5 less, and a tenth more or
    less by turns."""
    def scores(gap):
        rows = [('2000', 0.), ('full', -gap)]
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric='coherence',
                                  level=level, group=f'd{i}',
                                  value=4. + (v == '17')*(drop - .5 + (i % 2 - .5)/5*(level == 'full')*(gap != -1)))
                             for i in range(4) for level, drop in rows for v in ('gold', '17')])
    kept = {}
    both = dict(vanilla_30=scores(-1), judgememo=scores(memo))
    from experiments.test_experiments_findings import Run, sources
    names = dict(both=both, shared=['LI'], TASKS={'17': 'coherence'}, P={}, heads={}, pd=pd, run=Run())
    exec(sources('judgememo')['jm-change'], names)
    row = names['change'].iloc[0]
    assert row.scored == 4 and round(row['mean'], 9) == mean and (row.ci_low < mean < row.ci_high)

@pytest.mark.parametrize('p, differ', [(.04, 6), (.06, 0)])
def test_lengths_are_compared_two_sided(p, differ):
    table = pd.DataFrame([dict(setup=s, evaluator='LI', variant=v, p=p,
                               p_holm=6*p, scored=30, mean=-.1, ci_low=-.2, ci_high=0.)
                          for s in ('vanilla_30', 'judgememo') for v in ('43', '41', '42', '24', '17', '32')])
    says(said('judgememo', 'jm-length-finding', on_target=table, wanted=['LI'],
              TITLES=dict(vanilla_30='v30', judgememo='J')),
         f'J, models recorded in full under both (LI): 2K and Full are shown to differ (two-sided, p below .05) in '
         f'{differ} of 6', 'in 0 after Holm')

@pytest.mark.parametrize('lost, silent', [(10, True), (4, False)])
def test_a_judge_without_a_score(lost, silent):
    missing = pd.DataFrame([dict(setup='judgememo', evaluator='Q-noT',
                                 level='full', variant='41', metric='fluency', missing=lost)])
    setups = dict(vanilla=pd.DataFrame(columns=['metric', 'evaluator']),
                  judgememo=pd.DataFrame(dict(metric=['fluency']*10, evaluator='Q-noT')))
    assert ('Q-noT under JudgeMemo has no score at all.' in said('judgememo', 'jm-missing-finding',
                                                                 missing=missing, setups=setups)) == silent

# Ablations: what leads

@pytest.mark.parametrize('change, p_holm, words',
                         [(.05, .01, 'Faults are noticed less with summaries at 2,000 tokens'),
                          (-.05, .01, 'Faults are noticed more with summaries at 2,000 tokens'),
                          (.05, .2, 'In none of 2 comparisons')])
def test_what_leads_of_the_parts(change, p_holm, words):
    parts = ends(pd.DataFrame(dict(part=['summaries', 'overlap'], level=['2000', 'full'], p_holm=[p_holm, 1.])),
                 [change, 0.], .02).rename(columns=dict(mean='change'))
    says(said('judgememo_ablations', 'ablations-parts-finding', parts=parts), words)

# Prompts

def lost(**shares):
    return pd.DataFrame([dict(prompt=p, evaluator=e, length='Full', missing=s, cut=s//2, asked=100, share=float(s))
                         for p, row in shares.items() for e, s in zip(('LI', 'Q'), row)]).replace(
                             {'prompt': dict(main='v6-3')})

def test_which_prompt_loses_scores():
    text = said('judgememo_prompts', 'prompts-findings', lost=lost(main=(4, 40), v1=(0, 10), v2=(90,)))
    says(text, 'v6-3, the prompt of the main study, lacks 40 % of the scores of one judge (Q, Full', 'and 4 % at best',
         'with v2: 90 % by LI', 'v1 (5.0 %) lacks fewest scores and v6-3 (22.0 %) most, of the 2 prompts')
    says(text, 'Of these 54 missing scores 27 are of replies that were cut off; 27 could not be read, 22 of them with '
               'v6-3.')
    says(said('judgememo_prompts', 'prompts-findings', lost=lost(main=(0, 0), v1=(30, 10))),
         'v6-3 (0.0 %) lacks fewest scores and v1 (20.0 %) most')

def test_a_score_that_cannot_be_read_is_missing_too():
    from factlib.papers.judgememo.prompts import missing_scores, missing_words
    rows = [dict(prompt=p, evaluator='LI', level='2000', value=4. if why is None else None, finish_reason=why or 'stop')
            for p, whys in dict(v1=['length', None, None, None], v2=['stop', 'stop', None, None]).items()
            for why in whys]
    says(missing_words(missing_scores(pd.DataFrame(rows))), 'v1 (25.0 %) lacks fewest scores and v2 (50.0 %) most',
         'Of these 3 missing scores 1 are of replies that were cut off; 2 could not be read, 2 of them with v2.')

@pytest.mark.parametrize('change, p_holm, words',
                         [(-.5, .01, 'more is noticed with v1 (not recorded with Q) and less with no prompt'),
                          (.5, .01, 'more is noticed with no prompt and less with v1 (not recorded with Q)'),
                          (-.5, .2, 'for the other 1 no difference is shown')])
def test_prompts_beside_that_of_the_main_study(change, p_holm, words):
    beside = pd.DataFrame(dict(prompt=['v1'], judges=[['LI']], change=[change], p_holm=[p_holm], documents=5))
    told = said('judgememo_prompts', 'prompts-compared-finding', beside=beside,
                prompts=['v1', 'v4-1', 'v6-3'], table=pd.DataFrame(dict(evaluator=['LI', 'Q'])))
    says(told, words, 'on 5 texts. Not compared: v4-1.')

# The screening

def strong(a, b):
    table = pd.DataFrame([dict(id=i, task=f'[{i}]', length=f'{k} tokens',
                               level=k, metric='coherence', intensity=75., delta=d, scored=11 if i == '11' else 20)
                          for i, ds in (('32', a), ('11', b)) for k, d in zip(('1000', '2000'), ds)])
    return table.assign(ci_low=table.delta - .1, ci_high=table.delta + .1)

@pytest.mark.parametrize('a, b, other, words', [
    ((-.3, -.4), (0., .05), (0., 0.),
     ['1 of 2 faults are noticed at each length, 1,000 and 2,000 tokens, on the metric they were meant to lower '
      '(interval below 0): [32]', 'At some of these lengths only: none; at none of them',
      'to lower: [11].', 'On the other metric, a drop is shown for none of these',
      'With 11 to 20 texts', '[32], entities made vague, costs 0.30']),
    ((-.3, -.4), (0., .05), (0., -.35),
     ['On the other metric, a drop is shown for [11] at 2,000 tokens (fluency, −0.35 [−0.45, −0.25]).']),
    ((-.3, 0.), (.3, .4), (0., 0.), ['0 of 2 faults are noticed at each length',
                                     '(interval below 0): none', 'At some of these lengths only: [32];'])])
def test_what_is_noticed_at_its_strongest(a, b, other, words):
    from factlib.report.words import listed
    says(said('judgememo_matrix_analysis', 'matrix-noticed-finding', strong=strong(a, b),
              beside=strong((-.5, -.5), other).assign(metric='fluency'), listed=listed), *words)

# Intervals

def tasks(shift):
    rows = [dict(level=level, task=task, metric='fluency', ci_low=4. + s, ci_high=4.2 + s, delta_low=s - .1,
                 delta_high=s + .1) for level in ('2000', 'full') for task, s in (('gold', 0.), ('41', shift))]
    return said('judgememo_intervals', 'intervals-findings', tasks=pd.DataFrame(rows))

def test_intervals_of_scores_and_of_their_difference():
    says(tasks(-.5), 'to lower: 1 of 1 at 2K and 1 of 1 at Full', 'spoilt scores are apart for 1 and 1',
         'noticed at 2K is noticed at Full')
    # the paired difference tells more
    says(tasks(-.15), 'to lower: 1 of 1 at 2K and 1 of 1 at Full', 'spoilt scores are apart for 0 and 0')
    says(tasks(.5), 'to lower: 0 of 1 at 2K and 0 of 1 at Full', 'spoilt scores are apart for 1 and 1')

@pytest.mark.parametrize('task, full, words',
                         [('42', .1,
                           '2K only: [42] wrong verb tenses. But short texts hold more per 1,000 tokens of [42] (100 '
                           'verbs'), ('41', .1, '2K only: [41] typos, of which both lengths hold the same share.'),
                          ('42', -.1, 'Every fault that is noticed at 2K is noticed at Full, too.')])
def test_a_fault_noticed_in_short_texts_only_may_be_denser_there(task, full, words):
    from factlib.papers.judgememo.intervals import lost_words
    says(lost_words(pd.DataFrame(dict(task=task, level=['2000', 'full'], delta_high=[-.1, full]))), words)

@pytest.mark.parametrize('typos, words, told',
                         [((-.3, -.3), (-.05, -.3),
                           '[41] typos 2 of 2 (1K: 1 of 1, Full: 1 of 1); [43] shuffled word order 1 of 2 (1K: 0 of 1, '
                           'Full: 1 of 1).'),
                          ((-.05, .3), (-.3, .3),
                           '[41] typos 0 of 2 (1K: 0 of 1, Full: 0 of 1); [43] shuffled word order 1 of 2 (1K: 1 of 1, '
                           'Full: 0 of 1).')])
def test_packed_faults_at_every_length(typos, words, told):
    part = ends(pd.DataFrame(dict(manipulation=['41', '41', '43', '43'], density='dense', level=['1000', 'full']*2)),
                [*typos, *words], .1)
    says(said('judgememo_intervals', 'intervals-dense-finding', part=part), told)
    assert not said('judgememo_intervals', 'intervals-dense-finding', part=part.assign(density='widespread'))

# The texts

def counts(sentences, agrees=4):
    printed = {'3.1': type('Table', (), dict(cells={'sentences (as labelled)': sentences}))}
    from factlib.papers.judgememo.texts import with_swapped
    status = ['agrees']*agrees + ['differs']*(4 - agrees) + ['no_data']*12
    found = pd.DataFrame(dict(status=status, cell=['x']*15 + ['sentences (as labelled)'],
                              published=sentences, by_recipe=float('nan'), note=''))
    found = with_swapped(found, 178.46)
    counted = pd.DataFrame(dict(length=['full', '2000'], words=[1000, 100], paragraphs=[178.46, 20]))
    return said('judgememo_dataset_statistics', 'texts-findings', found=found, counted=counted, printed=printed)

def test_a_swapped_number_is_counted_as_one():
    says(counts(178.46),
         'Of 16 printed statistics 5 could be checked: 4 agree, 1 holds another number\'s value, 0 with another value',
         'sentences, 178.46, is the mean number of paragraphs')
    text = counts(500., agrees=3)
    says(text, '4 could be checked: 3 agree, 0 hold another number\'s value, 1 with another value')
    assert 'is the mean number of paragraphs' not in text

# Failures

def failures(where, kinds):
    failed = pd.DataFrame([dict(setup='vanilla, 65 texts', length=length, variant=v, kind=k, model='Q')
                           for (length, v), k in zip(where, kinds)])
    return said('judgememo_failure_gallery', 'gallery-findings', failed=failed,
                setups={'vanilla, 65 texts': range(1000)})

def test_which_replies_fail():
    says(failures([('full', '41'), ('full', '17')], ['list', 'loop']), '2 of 1,000 replies lack a score; 1 of them',
         'Of these 2, 1 list issue after issue without a verdict and 1 repeat one block')
    says(failures([('2000', '41')], ['thinking']), '; 0 of them are about long texts',
         'Of these 1, 1 never stop reasoning.')

# A rule or a final call: fault by fault

@pytest.mark.parametrize('gain, words',
                         [(.5, 'Fault by fault: of 4 combinations of judge, length and fault, the rule\'s drop stands '
                               'out more in 4 (interval above 0 in 4)'),
                          (-.5, 'the final call\'s in 4 (interval below 0 in 4)'),
                          (.05, 'Fault by fault little is shown')])
def test_a_rule_fault_by_fault(gain, words):
    single = pd.DataFrame(dict(gain=[gain]*4, gain_low=gain - .1, gain_high=gain + .1))
    says(said('judgememo_rule_or_final_call', 'rule-single-finding', single=single, by_length=[]), words)

@pytest.mark.parametrize('low, words', [(.3, 'more often than chance would (interval above chance in 2 of 2'),
                                        (.1, 'is not shown in most cases (interval above chance in 0 of 2')])
def test_whether_notes_quote_the_faults(low, words):
    places = pd.DataFrame(dict(evaluator='Q', level='full', manipulation=['[17]', '[43]'], errors=10, documents=30,
                               labelled=1., by_place=1., lift=0., quoted=.4, quoted_low=low, quoted_by_chance=.2))
    says(said('judgememo_rule_or_final_call', 'rule-quoted-finding', places=places, longest='full'), words)

# Ways to damage a text

@pytest.mark.parametrize('short, whole, words, swapped',
                         [(2., 1.2, '[17] exchanged paragraphs (2.0 and 1.2)', 4), (1.2, 2., 'for no kind', 20)])
def test_which_kinds_are_denser_in_short_texts(short, whole, words, swapped):
    from factlib.perturb.quality import NAMES
    rows = pd.DataFrame(dict(variant='17', length=['2,000 tokens (SC)', 'whole text (LC)'], per_1000=[short, whole]))
    kinds = pd.DataFrame(dict(id=['17', '41'], metric=['coherence', 'fluency']))
    audit = pd.DataFrame(dict(words_42=[20.], of_verbs=[24. - swapped],
                              of_sentences=[float(swapped)], sentences_43=[4.]))
    built = type('Built', (), dict(benchmark=type('B', (list,), dict(refused=[]))()))
    text = said('judgememo_taxonomy', 'taxonomies-findings', rows=rows, kinds=kinds,
                settings=kinds[:1], density={}, audit=audit, mode='paper', built=built, texts=[], NAMES=NAMES)
    says(text, words, '2 ways to damage a text, 1 meant to lower coherence and 1 fluency; its benchmark uses 1',
         'swapped in Table 3.7' if swapped == 4 else 'does not show that their units are swapped')

# trutheval

def ladders(tau, auc):
    own = pd.DataFrame(dict(evaluator=['rouge1', 'judge'], questions=100, tau=[tau, -.5], auc=[auc, .9]))
    for name in ('tau', 'auc'): own[f'{name}_low'], own[f'{name}_high'] = own[name] - .02, own[name] + .02
    return said('trutheval', 'trutheval-two-finding', own=own, main='recorded')

def test_whether_shared_words_follow_the_levels():
    says(ladders(-.99, .6), 'without reading for errors', 'for judge, the highest of 2 evaluators, and 0.60',
         'for 0 of them the interval includes one half.')
    says(ladders(-.7, .95), 'do not follow the levels better', 'for rouge1, the highest of 2')
    says(ladders(-.95, .5), 'can\'t be told', 'for 1 of them the interval includes one half.')

@pytest.mark.parametrize('judge, words',
                         [(.9, 'Of true texts and lies within 0.03 of each other in ROUGE-1, judge puts 90% in the '
                               'right order; ROUGE-1 alone still puts 70% right and text length 60%. Our rules know'),
                          (.72, 'judge puts 72% in the right order, not shown to be more than others; ROUGE-1 alone')])
def test_true_texts_against_lies(judge, words):
    put = pd.DataFrame(dict(evaluator=['rouge1', 'length', 'judge'], questions=100,
                            matched_right=[.7, .6, judge], matched_right_low=[.6, .5, judge - .05]))
    says(said('trutheval', 'trutheval-controls-finding', put=put, NEAR=.03), words)

# VISTA

def aucs(*differences, half=.02, p_holm=.01, made_on=0):
    rows = [dict(dataset=f'set{i}', evaluator='vista', auc=.9, ci_low=.8, ci_high=.95, difference=d,
                 difference_low=d - half, difference_high=d + half, p_holm=p_holm) for i, d in enumerate(differences)]
    return said('vista', 'vista-answer', aucs=pd.DataFrame(rows), written=range(30), made_on=made_on)

def test_whether_claims_beat_shared_words():
    says(aucs(.1, -.1), 'AUC of 0.90 to 0.90 on 2 sets', 'alone with 0.80 to 1.00',
         'beat shared words is shown on 1 of 2 sets, the opposite on 1 (Holm')
    says(aucs(.1, .01), 'shown on 1 of 2 sets, the opposite on 0; on 1 it can\'t be told')
    says(aucs(.1, -.1, p_holm=.2), 'shown on 0 of 2 sets, the opposite on 0; on 2 it can\'t be told')
    says(aucs(.1, made_on=20), 'Its rules were made on 20 of the 30 written dialogues.')
    assert 'rules were made' not in aucs(.1)

def test_an_ablation_that_changes_nothing_says_nothing():
    def found(b, delta):
        return said('vista', 'vista-ablations-finding',
                    ablations=pd.DataFrame(dict(setting=['vista', 'vista_no_history'],
                                                scored=112, b=[None, b], c=[None, 0], delta=[None, delta],
                                                ci_low=[None, delta - 1], ci_high=[None, delta + 1])))
    says(found(0, 0.), 'no verdict of 112 turns changes with vista_no_history', 'says nothing about')
    says(found(5, 4.5), 'vista_no_history 4.50, a loss')
    says(found(5, -4.5), 'vista_no_history -4.50, a gain')
    says(found(5, .5), 'vista_no_history 0.50, not shown')
