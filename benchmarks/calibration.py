"""What intervals of calibrated means, and the Alternative Annotator Test, keep of their promise, on simulated documents
whose truth is known. `make bench` runs it (some two minutes); `calibration.md` has the figures.

Calibrated means: 40 documents of 8 texts; people's scores share .3 of their variance (ICC) within a document; the
judge is people's score plus .5 plus noise that lies in documents to the same share. 40 texts have a label, drawn at
random. Varied one at a time: the noise, the number of documents and of labels, the ICC, and two labels (people's
score above -.5, the judge's above 0) instead of numbers.

- cover: share of the intervals that hold people's mean over all documents there could be
- items: the same of intervals without groups
- width: mean width by groups, over that of the labels alone

The Alternative Annotator Test: three people err on one text in ten, each by himself, the judge on whole documents.
At the border, where the judge is worse than a person by exactly epsilon, few should pass."""
import argparse
import math
import time

import numpy as np

from factlib.validity.calibration import calibrated_difference, calibrated_mean
from factlib.validity.replacement import alt_test

STUDY = dict(documents=40, size=8, labelled=40, icc=.3, noise=.6, two_labels=False)
VARIED = (dict(), dict(noise=.2), dict(noise=1.), dict(noise=3.), dict(icc=0), dict(icc=.6), dict(documents=12),
          dict(documents=100, labelled=60), dict(labelled=15), dict(labelled=160), dict(two_labels=True))
METHODS = ('ppi', 'isotonic', 'rogan_gladen', 'labels')


def mixed(rng, document, icc):
    "Numbers of variance 1, a share `icc` of it the documents'."
    shared = rng.normal(size=document.max() + 1)[document]
    return math.sqrt(icc)*shared + math.sqrt(1 - icc)*rng.normal(size=len(document))


def draw(rng, documents, size, labelled, icc, noise, two_labels):
    "(judge, labels with NaN for none, document of each text, people's mean over all documents there could be)."
    document = np.repeat(np.arange(documents), size)
    people = mixed(rng, document, icc)
    judge, truth = people + .5 + noise*mixed(rng, document, icc), 0.
    if two_labels: # P(a standard normal number is above -.5)
        people, judge, truth = (people > -.5)*1., (judge > 0)*1., .5*(1 + math.erf(.5/math.sqrt(2)))
    labels = np.full(len(people), np.nan)
    some = rng.choice(len(people), labelled, replace=False)
    labels[some] = people[some]
    return judge, labels, document, truth


def covered(runs, seed, methods=METHODS, **changes):
    "(method, by groups?) -> (share that holds the truth, mean width)."
    rng, study = np.random.default_rng(seed), STUDY | changes
    found = {}
    for _ in range(runs):
        judge, labels, document, truth = draw(rng, **study)
        for method in methods:
            for grouped in (True, False):
                if method == 'rogan_gladen' and not study['two_labels']: continue
                r = calibrated_mean(judge, labels, document if grouped else None, method)
                found.setdefault((method, grouped), []).append((r.low <= truth <= r.high, r.high - r.low))
    return {key: tuple(np.mean(rows, axis=0)) for key, rows in found.items()}


def differences(runs, seed):
    "Of `calibrated_difference` of two systems that are alike: (share that holds 0, width, width of labels alone)."
    rng, found = np.random.default_rng(seed), []
    size, labelled = STUDY['size'], STUDY['labelled']
    for _ in range(runs):
        document = np.repeat(np.arange(STUDY['documents']), size)
        hard = mixed(rng, document, STUDY['icc'])
        people = [hard + .7*mixed(rng, document, STUDY['icc']) for _ in range(2)]
        judges = [x + .5 + .6*mixed(rng, document, STUDY['icc']) for x in people]
        some = np.isin(np.arange(len(document)), rng.choice(len(document), labelled, replace=False))
        a, b = ((f, np.where(some, y, np.nan)) for f, y in zip(judges, people))
        r, alone = (calibrated_difference(*a, *b, document, method) for method in ('ppi', 'labels'))
        found.append((r.low <= 0 <= r.high, r.high - r.low, alone.high - alone.low))
    return np.mean(found, axis=0)


def passes(runs, seed, wrong, documents=20, size=5):
    """Shares of passes of the Alternative Annotator Test with and without groups, the judge being wrong on such a share
    of documents. mean(g - f) is .8(wrong - .1): where the judge and a person part, the two others are both right with
    .81 and both wrong with .01, and else it is a tie. So .35 is the border for epsilon = .2."""
    rng, found = np.random.default_rng(seed), []
    document = np.repeat(np.arange(documents), size)
    for _ in range(runs):
        people = {f'h{k}': dict(enumerate((rng.random(len(document)) < .1).astype(int))) for k in range(3)}
        judge = dict(enumerate((rng.random(documents) < wrong)[document].astype(int)))
        found.append([alt_test(judge, people, groups=g).passes for g in (dict(enumerate(document)), None)])
    return np.mean(found, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--n', type=int, default=1000, help='simulations a row')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    start = time.process_time()
    print(f'{options.n} simulations a row: a share of .95 has a binomial error of {math.sqrt(.95*.05/options.n):.3f}\n')
    print('| study | method | cover | items | width |\n|---|---|---|---|---|')
    for changes in VARIED:
        words = [key.replace('_', ' ') + ('' if value is True else f' {value:g}') for key, value in changes.items()]
        name = ', '.join(words) or 'as above'
        found = covered(options.n, options.seed, **changes)
        alone = found['labels', True][1]
        for method in METHODS:
            if (method, True) not in found: continue
            cover, width = found[method, True]
            print(f'| {name} | {method} | {cover:.3f} | '
                  f'{found[method, False][0]:.3f} | {width/alone:.2f} |', flush=True)
    cover, width, alone = differences(options.n, options.seed)
    print(f'\nDifference of two like systems: cover {cover:.3f}, width {width/alone:.2f} of the labels alone\n')
    print('| judge wrong on | difference | passes by groups | by items |\n|---|---|---|---|')
    for wrong in (.05, .2, .35, .5):
        by_groups, by_items = passes(max(1, options.n//2), options.seed, wrong)
        print(f'| {wrong:g} | {.8*(wrong - .1):.2f} | {by_groups:.3f} | {by_items:.3f} |', flush=True)
    print(f'\n{time.process_time() - start:.0f} s of processor time')


if __name__ == '__main__': main()
