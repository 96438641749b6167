"Findings about the thesis's texts and its ways to damage them, on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.texts import (density_finding, statistics_finding, taxonomy_finding, units_finding,
                                            with_swapped)
from sentences import says

def counts(sentences, agrees=4):
    status = ['agrees']*agrees + ['differs']*(4 - agrees) + ['no_data']*12
    found = pd.DataFrame(dict(status=status, cell=['x']*15 + ['sentences (as labelled)'],
                              published=sentences, by_recipe=float('nan'), note=''))
    return statistics_finding(with_swapped(found, 178.46), 178.46, sentences)

def test_a_swapped_number_is_counted_as_one():
    says(counts(178.46),
         'Of 16 printed statistics 5 could be checked: 4 agree with the texts, 1 of the other 1 is '
         'another statistic\'s value.',
         'sentences, 178.46, is the mean number of paragraphs')
    text = counts(500., agrees=3)
    says(text, '4 could be checked: 3 agree with the texts, 0 of the other 1 are another statistic\'s value')
    assert 'is the mean number of paragraphs' not in text

@pytest.mark.parametrize('short, whole, words, swapped',
                         [(2., 1.2, '[17] exchanged paragraphs (2.0 and 1.2)', 4), (1.2, 2., 'for no kind', 20)])
def test_which_kinds_are_denser_in_short_texts(short, whole, words, swapped):
    rows = pd.DataFrame(dict(variant='17', length=['2,000 tokens (SC)', 'whole text (LC)'], per_1000=[short, whole]))
    kinds = pd.DataFrame(dict(id=['17', '41'], metric=['coherence', 'fluency']))
    audit = pd.DataFrame(dict(words_42=[20.], of_verbs=[24. - swapped],
                              of_sentences=[float(swapped)], sentences_43=[4.]))
    says([taxonomy_finding(kinds, ['17']), density_finding(rows, 'paper'), units_finding(audit)], words,
         '2 ways to damage a text, 1 meant to lower coherence and 1 fluency; its benchmark uses 1',
         'swapped in Table 3.7' if swapped == 4 else 'does not show that their units are swapped')
