"factlib.report.figures: what is drawn is what the data say; nothing global changes; hostile labels are harmless."
import math, subprocess, sys, warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.report.figures.intervals import ci_plot, t_bars
from factlib.report.figures.network import network
from factlib.report.figures.deltas import delta_lines
from factlib.report.figures.heatmap import heatmap
from factlib.report.figures import style
from factlib.report.figures.style import palette, save_figure
from factlib.report.figures.violins import violins

pytestmark = pytest.mark.filterwarnings('ignore:Glyph')
HOSTILE = ['$x_1$', '_under', '<b>&amp;', '{a}%', '\\frac{1}{2}', '$',
           '$$', '', '  ', '\x00\x1b', 'a\nb', '文書', 'עברית', 'x' * 500, '%s %d {0}', '-1', "'\"", '#^~']
LABEL = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=['Cs']), max_size=10)
FEW = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))

def draw(kind, labels, values, **kw):
    "Any of the figures from labels and values."
    frame = pd.DataFrame(dict(a=pd.Series(labels, dtype=object), v=pd.Series(values, dtype=object)))
    frame['low'], frame['high'] = ([None if v is None else v + d for v in frame.v] for d in (-1, 1))
    if kind == 'heatmap': return heatmap(frame.assign(b='b'), 'a', 'b', 'v', **kw)
    if kind == 'violins': return violins(frame, 'a', 'v', **kw)
    if kind == 'ci_plot': return ci_plot(frame, 'a', 'v', 'low', 'high', **kw)
    if kind == 't_bars': return t_bars(frame, 'a', 'v', critical=2, **kw)
    return delta_lines(frame.assign(b='b'), 'b', 'v', 'a', low='low', high='high', **kw)

KINDS = ['heatmap', 'violins', 'ci_plot', 't_bars', 'delta_lines']
texts = lambda fig: [t.get_text() for ax in fig.axes for t in ax.texts]
svg = lambda fig: style.figure_bytes(fig, 'svg', 100).decode()
def said(fig):
    "All texts of the SVG, which must be well-formed XML."
    return [''.join(e.itertext()) for e in ET.fromstring(svg(fig)).iter('{http://www.w3.org/2000/svg}text')]

def bars(ax):
    "(centre, length) of the bars, which are the only patches in containers."
    return [(round(b.get_y() + b.get_height() / 2, 6), b.get_width()) for c in ax.containers for b in c]

def hatched(ax): return [p for p in ax.patches if p.get_hatch()]

def test_heatmap_has_one_mark_a_cell():
    frame = pd.DataFrame([dict(m=m, r=r, c=c, v=v) for m, r, c, v in (('f', 1, 'x', -1.234), ('f', 1, 'y', None),
                                                                      ('f', 2, 'x', .5), ('g', 2, 'y', 0.0))])
    fig = heatmap(frame, 'r', 'c', 'v', facet='m', order_rows=[1, 2, 3])
    one, two, bar = fig.axes
    assert [t.get_text() for t in one.texts if t.get_text() != '–'] == ['−1.23', '0.50'] and len(one.texts) == 6
    assert [t.get_text() for t in two.texts if t.get_text() != '–'] == ['0.00'] and len(two.texts) == 6
    assert (len(hatched(one)), len(hatched(two))) == (4, 5)
    assert 'no data (9 of 12 cells)' in said(fig)
    assert bar.get_ylim() == (-1.234, 1.234)
    assert {t.get_position() for t in one.texts if t.get_text() == '–'} == {(1.5, .5),
                                                                            (1.5, 1.5), (.5, 2.5), (1.5, 2.5)}

def test_heatmap_colours_mean_the_values():
    import matplotlib
    frame = pd.DataFrame(dict(r=['a', 'b', 'c'], c='x', v=[-2, 0, 1.0]))
    mesh = heatmap(frame, 'r', 'c', 'v').axes[0].collections[0]
    assert np.allclose(mesh.get_facecolors(), matplotlib.colormaps['RdBu'].resampled(21)([0, .5, .75]))
    assert len(texts(heatmap(frame, 'r', 'c', 'v', annotate=False))) == 0

def test_heatmap_cell_texts_contrast():
    "WCAG relative luminance by its own formula: at least 4.5 for every cell text over the whole range of colours."
    def light(c):
        c = [x / 12.92 if x <= .04045 else ((x + .055) / 1.055) ** 2.4 for x in c[:3]]
        return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]
    from matplotlib.colors import to_rgb
    for center in (0, None):
        ax = heatmap(pd.DataFrame(dict(r=[str(i) for i in range(41)], c='x', v=np.linspace(-1, 1, 41))),
                     'r', 'c', 'v', center=center).axes[0]
        colours = ax.collections[0].get_facecolors()
        for text in ax.texts:
            a, b = light(to_rgb(text.get_color())), light(colours[int(text.get_position()[1])])
            assert (max(a, b) + .05) / (min(a, b) + .05) >= 4.5

def test_heatmap_n_stands_in_the_cells_only_when_it_differs():
    frame = pd.DataFrame(dict(r=['a', 'b'], c='x', v=[1, 2], n=[65, 65]))
    fig = heatmap(frame, 'r', 'c', 'v', n='n')
    assert texts(fig) == ['1.00', '2.00'] and 'n = 65 per cell' in said(fig)
    fig = heatmap(frame.assign(n=[65, 28]), 'r', 'c', 'v', n='n')
    assert texts(fig) == ['1.00\nn = 65', '2.00\nn = 28'] and 'n = 28 to 65 per cell' in said(fig)

def test_heatmap_limits_that_cut_show_arrows():
    frame = pd.DataFrame(dict(r=['a', 'b'], c='x', v=[-3, 1.0]))
    ends = lambda **kw: len(heatmap(frame, 'r', 'c', 'v', **kw).axes[1].patches)
    assert ends() == ends(limits=(-3, 3)) and ends(limits=(-1, 1)) > ends()

def test_t_bars_draws_the_data_and_the_band():
    frame = pd.DataFrame(dict(x=['a', 'a', 'b', 'b'], h=['f', 'c', 'f', 'c'], t=[-3.0, 1.0, None, 0.0]))
    fig = t_bars(frame, 'x', 't', 'h', 1.5)
    ax, = fig.axes
    assert bars(ax) == [(-.2, -3.0), (.2, 1.0), (1.2, 0.0)]
    assert texts(fig).count('no data') == 1
    assert sorted(t for t in texts(fig) if t != 'no data') == ['0.00', '1.00', '−3.00']
    strip, = hatched(ax)
    assert strip.get_y() < .8 < strip.get_y() + strip.get_height() <= 1
    band, = [p for p in ax.patches if not p.get_hatch() and p not in [b for c in ax.containers for b in c]]
    assert (band.get_x(), band.get_x() + band.get_width()) == (-1.5, 1.5)
    assert 'not significant: |t| < 1.50' in said(fig)

def test_t_bars_with_a_critical_value_each():
    frame = pd.DataFrame(dict(x=['a', 'b', 'c'], t=[-3.0, 1.0, None], c=[1.5, 2.5, None], n=[65, 30, 0]))
    fig = t_bars(frame, 'x', 't', critical='c', n='n')
    ax, = fig.axes
    steps = [p.get_extents() for c in ax.collections if type(c).__name__ == 'FillBetweenPolyCollection'
             for p in c.get_paths()]
    assert [(s.x0, s.x1, s.y0, s.y1) for s in steps] == [(-1.5, 1.5, -.4, .4), (-2.5, 2.5, .6, 1.4)]
    assert {'n = 65', 'n = 30', 'n = 0'} <= set(texts(fig)) and 'n = 30 to 65 per test' in said(fig)
    with pytest.raises(BadInput, match='no critical value for a'):
        t_bars(frame.assign(c=[None, 2.5, 1]), 'x', 't', critical='c')
    with pytest.raises(BadInput, match='positive'): t_bars(frame, 'x', 't', critical=0)
    with pytest.raises(BadInput, match='needs the critical'): t_bars(frame, 'x', 't')

def test_ci_plot_draws_the_data():
    frame = pd.DataFrame(dict(x=['a', 'b', 'c', 'd'], e=[.5, -1.0, None, 2.0],
                              l=[.25, -2, None, None], h=[1, -.5, None, None], n=[5, 6, 0, 7]))
    fig = ci_plot(frame, 'x', 'e', 'l', 'h', n='n', order_x=['a', 'b', 'c', 'd', 'absent'])
    ax, = fig.axes
    segments = [s.tolist() for c in ax.collections if len(c.get_linewidths())
                and c.get_linewidths()[0] == 2.2 for s in c.get_segments()]
    assert segments == [[[.25, 0], [1, 0]], [[-2, 1], [-.5, 1]]]
    dots = [(line.get_xdata()[0], line.get_ydata()[0], line.get_markerfacecolor()
             if line.get_color() == 'white' else 'full') for line in ax.lines if line.get_marker() == 'o']
    assert dots == [(.5, 0, 'full'), (-1, 1, 'full'), (2, 3, 'white')]
    assert texts(fig).count('no data') == 2 and len(hatched(ax)) == 2 and 'no interval' in said(fig)
    assert {'n = 5', 'n = 6', 'n = 0', 'n = 7'} <= set(texts(fig))
    assert ax.get_ylim()[0] > ax.get_ylim()[1], 'the first category is at the top'
    with pytest.raises(BadInput, match='swapped'): ci_plot(frame.assign(l=9.0), 'x', 'e', 'l', 'h')

def test_violins_show_every_score():
    frame = pd.DataFrame(dict(x=['many'] * 20 + ['two'] * 4 + ['same'] * 5 + ['none'],
                              y=[i / 10 for i in range(20)] + [1.0, 2.0, 1.0, None] + [3.0] * 5 + [None]))
    fig = violins(frame, 'x', 'y')
    ax, = fig.axes
    curves = [c for c in ax.collections if not c.get_offsets().any()]
    points = {round(float(np.mean(c.get_offsets()[:, 0]))): sorted(c.get_offsets()[:, 1].tolist())
              for c in ax.collections if c.get_offsets().any()}
    assert len(curves) == 1
    assert points == {0: [i / 10 for i in range(20)], 1: [1, 1, 2], 2: [3] * 5}
    means = [float(line.get_ydata()[0]) for line in ax.lines if line.get_marker() == 'D']
    assert means == pytest.approx([.95, 4 / 3, 3])
    assert [t for t in texts(fig)] == ['n = 20', 'n = 3\nof 4', 'n = 5', 'n = 0\nof 1', 'no data']

def middles_of(ax):
    return sorted(float(np.mean(c.get_paths()[0].get_extents().intervalx))
                  for c in ax.collections if not c.get_offsets().any())

def test_violins_with_hue_stand_under_their_points():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(dict(x=np.repeat(['a', 'b'], 40), h=np.tile(['f', 'g'], 40), y=rng.normal(size=80)))
    ax = violins(frame, 'x', 'y', 'h').axes[0]
    assert middles_of(ax) == pytest.approx([-.2, .2, .8, 1.2], abs=.01)
    colours = {tuple(np.round(c.get_facecolor()[0][:3], 3)) for c in ax.collections}
    assert len(colours) == 2
    few = frame.assign(y=[0 if h == ('f' if x == 'a' else 'g') else y for x, h, y in zip(frame.x, frame.h, frame.y)])
    assert middles_of(violins(few, 'x', 'y', 'h').axes[0]) == pytest.approx([.2, .8], abs=.01) # one curve each

def lines_of(ax):
    return [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.lines
            if len(line.get_xdata()) > 1 and line.get_marker() not in ('None', None, '')]

def test_delta_lines_break_where_there_is_nothing():
    frame = pd.DataFrame(dict(x=['2000', '4000', 'full'] * 2, m=['a'] * 3 + ['b'] * 3,
                              d=[-1.0, None, -.5, -.2, -.1, None]))
    fig = delta_lines(frame, 'x', 'd', 'm')
    (xa, ya), (xb, yb) = lines_of(fig.axes[0])
    assert xa == [0, 1, 2] and ya[0] == -1 and math.isnan(ya[1]) and ya[2] == -.5 and yb[:2] == [-.2, -.1]
    assert math.isnan(yb[2])
    crosses = [float(line.get_xdata()[0]) for line in fig.axes[0].lines if line.get_marker() == 'x']
    assert crosses == [1, 2] and sorted(texts(fig)) == ['a', 'b'] and 'no data' in said(fig)

def test_delta_lines_never_cut_a_point_off():
    "Also not when panels share an axis and some have gaps."
    rng = np.random.default_rng(3)
    frame = pd.DataFrame([dict(f=f, x=x, m=m, d=rng.normal() * (5 if f == 'q' else 1))
                          for f in 'pqr' for x in 'abcd' for m in 'uvw'])
    frame.loc[rng.random(len(frame)) < .3, 'd'] = None
    for ax in delta_lines(frame, 'x', 'd', 'm', facet='f').axes:
        low, high = ax.get_ylim()
        ys = [y for _, line in lines_of(ax) for y in line if not math.isnan(y)]
        assert low < min(ys) and max(ys) < high

def test_delta_lines_leave_room_at_both_sides():
    "A hundredth part of the way from 2 to 12 is .1; nine of them stand before the first point and behind the last."
    frame = pd.DataFrame(dict(x=[2, 12], d=[-1., -2.], m='a'))
    assert delta_lines(frame, 'x', 'd', 'm').axes[0].get_xlim() == pytest.approx((1.1, 12.9))

def test_delta_lines_put_numbers_at_their_distances():
    frame = pd.DataFrame(dict(x=[10, 1, 2], m='a', d=[3.0, 1.0, 2.0]))
    ax = delta_lines(frame, 'x', 'd', 'm').axes[0]
    assert lines_of(ax) == [([1, 2, 10], [1, 2, 3])]
    assert [t.get_text() for t in ax.get_xticklabels()] == ['1', '2', '10']
    ax = delta_lines(frame, 'x', 'd', 'm', order_x=[10, 1, 2]).axes[0]
    assert lines_of(ax) == [([0, 1, 2], [3, 1, 2])]

def test_labels_at_line_ends_do_not_touch():
    frame = pd.DataFrame([dict(x=x, m=f'model {i}', d=0.001 * i + k) for k, x in enumerate('ab') for i in range(6)])
    fig = delta_lines(frame, 'x', 'd', 'm')
    boxes = sorted((t.get_window_extent() for t in fig.axes[0].texts), key=lambda b: b.y0)
    assert len(boxes) == 6 and all(a.y1 <= b.y0 + 1.5 for a, b in zip(boxes, boxes[1:]))

def test_many_lines_have_a_legend_and_differ():
    frame = pd.DataFrame([dict(x=x, m=f'model {i}', d=i + k) for k, x in enumerate('ab') for i in range(30)])
    fig = delta_lines(frame, 'x', 'd', 'm')
    looks = {(line.get_color(), line.get_linestyle()) for line in fig.axes[0].lines
             if len(line.get_xdata()) == 2 and line.get_marker() != 'None'}
    assert len(looks) >= 30 and {f'model {i}' for i in range(30)} <= set(said(fig))

@pytest.mark.parametrize('kind', KINDS)
def test_all_missing_says_so(kind):
    fig = draw(kind, ['a', 'b'], [None, None])
    assert any(t.startswith('no data: all') for t in texts(fig))
    if kind == 't_bars': assert not any(ax.containers for ax in fig.axes)

@pytest.mark.parametrize('kind', KINDS)
def test_hostile_labels(kind):
    @FEW
    @given(st.lists(LABEL, min_size=1, max_size=5, unique=True), LABEL)
    def run(labels, title):
        fig = draw(kind, labels, [float(i) for i in range(len(labels))], title=title, note=title)
        shown = [t.get_text() for t in fig.findobj(match=lambda o: hasattr(o, 'get_parse_math')) if t.get_text()]
        for x in labels:
            short = style.shown_label(x, 26).replace('\n', '')[:5]
            assert any(t.replace('\n', '').startswith(short) for t in shown), (x, shown)
        assert not any(t.get_parse_math() for t in fig.findobj(match=lambda o: hasattr(o, 'get_parse_math'))
                       if '$' in t.get_text())
        said(fig)
    run()

def test_hostile_labels_as_hue_and_facet():
    frame = pd.DataFrame([dict(x=x, h=h, f=f, v=1.0, l=0, u=2) for x in HOSTILE[:2]
                          for h in HOSTILE[1:4] for f in HOSTILE[:3]])
    for fig in (ci_plot(frame, 'x', 'v', 'l', 'u', 'h', facet='f'), t_bars(frame, 'x', 'v', 'h', 1.5, facet='f'),
                violins(frame, 'x', 'v', 'h', facet='f'),
            delta_lines(frame, 'x', 'v', 'h', facet='f')):
        assert {'_under', '<b>&amp;', '{a}%', '$x_1$'} <= set(said(fig))

@pytest.mark.parametrize('kind', KINDS)
def test_bad_input(kind):
    for labels, values, what in ((['a'], [float('inf')], 'inf'), ([None], [1.0], 'label'),
                                 (['a'], ['truncated'], 'not a number'),
                                 (['a'], [True], 'not a number'), ([['a']], [1.0], 'list')):
        with pytest.raises(BadInput, match=what): of_values(kind, labels, values)
    frame = pd.DataFrame(dict(a=['x'], b=['y']))
    calls = dict(heatmap=lambda f: heatmap(f, 'a', 'b', 'nope'), violins=lambda f: violins(f, 'a', 'nope'),
                 ci_plot=lambda f: ci_plot(f, 'a', 'nope', 'l', 'h'),
        t_bars=lambda f: t_bars(f, 'a', 'nope', critical=1), delta_lines=lambda f: delta_lines(f, 'a', 'nope', 'b'))
    with pytest.raises(BadInput, match="no column 'nope'; the columns are a, b"): calls[kind](frame)
    assert 'Nothing to show: the table has no rows.' in said(calls[kind](frame[:0]))
    with pytest.raises(BadInput, match='DataFrame'): calls[kind]({})
    if kind != 'violins':
        with pytest.raises(BadInput, match='Several rows'): of_values(kind, ['a', 'a'], [1, 2])

def of_values(kind, labels, values):
    "A figure of a value column alone, so that no interval is computed from it."
    frame = pd.DataFrame(dict(a=labels, b='b', v=pd.Series(values, dtype=object), l=0, h=1))
    return dict(heatmap=lambda: heatmap(frame, 'a', 'b', 'v'), violins=lambda: violins(frame, 'a', 'v'),
                ci_plot=lambda: ci_plot(frame, 'a', 'v', 'l', 'h'),
        t_bars=lambda: t_bars(frame, 'a', 'v', critical=1),
                delta_lines=lambda: delta_lines(frame, 'b', 'v', 'a'))[kind]()

def test_an_order_must_be_complete():
    frame = pd.DataFrame(dict(a=['x', 'y'], v=[1.0, 2.0]))
    with pytest.raises(BadInput, match="leaves out 'y'"): t_bars(frame, 'a', 'v', critical=1, order_x=['x'])
    ax = t_bars(frame, 'a', 'v', critical=1, order_x=['y', 'x']).axes[0]
    assert bars(ax) == [(0, 2), (1, 1)] and [t.get_text() for t in ax.get_yticklabels()] == ['y', 'x']
    ordered = frame.assign(a=pd.Categorical(frame.a, ['y', 'x', 'unused']))
    assert bars(t_bars(ordered, 'a', 'v', critical=1).axes[0]) == [(0, 2), (1, 1)]

def test_many_models_make_the_figure_grow_and_stay_apart():
    names = [f'some-model-{i}-instruct' for i in range(30)]
    for kind in KINDS[:4]:
        fig = draw(kind, names, [i / 10 for i in range(30)])
        assert fig.get_figwidth() <= 7.01 and fig.get_figheight() > 6
        boxes = sorted((t.get_window_extent() for t in fig.axes[0].get_yticklabels() if t.get_text()),
                       key=lambda b: b.y0)
        assert len(boxes) == 30 and all(a.y1 <= b.y0 + .5 for a, b in zip(boxes, boxes[1:]))

def test_nothing_covers_title_legend_or_note():
    frame = pd.DataFrame([dict(x=f'task {i}', h=h, t=-i) for i in range(4) for h in ('fluency', 'coherence')])
    fig = t_bars(frame, 'x', 't', 'h', 1.7, title='A title that is long ' * 8, note='A note ' * 40)
    title, note = fig.texts[0].get_window_extent(), fig.texts[1].get_window_extent()
    legend, panel = fig.legends[0].get_window_extent(), fig.axes[0].get_tightbbox()
    assert title.y0 >= legend.y1 and legend.y0 >= panel.y1 and panel.y0 >= note.y1 and note.y0 >= 0
    width, height = fig.get_size_inches() * fig.dpi
    assert title.y1 <= height and max(title.x1, note.x1, legend.x1, panel.x1) <= width and min(title.x0, panel.x0) >= 0

@pytest.mark.parametrize('make, columns', [(t_bars, dict(t='v', critical=2)),
                                           (ci_plot, dict(estimate='v', low='low', high='high'))])
@pytest.mark.parametrize('down', [1, 3])
def test_one_bar_has_room_below_a_heading_of_two_lines(make, columns, down):
    "One fault, one judge: the headings once took all of the panel, and lay over the title."
    facets = [f'{"abcdef"[i]}: a single prompt, and the short text minus the whole one' for i in range(2*down)]
    frame = pd.DataFrame(dict(x='typos', v=-3., low=-4., high=-2., facet=facets))
    fig = make(frame, x='x', facet='facet', label='t statistic', title='Is it noticed?', note='A note.', **columns)
    title, note = (text.get_window_extent() for text in fig.texts)
    for ax in fig.axes:
        room, bar = ax.get_tightbbox(), ax.get_window_extent()
        assert len(ax.get_title(loc='left').splitlines()) > 1 and bar.height/fig.dpi > .15
        assert title.y0 >= room.y1 and room.y0 >= note.y1

@pytest.mark.parametrize('kind', KINDS)
def test_a_single_panel_has_no_heading(kind):
    fig = draw(kind, ['a', 'b'], [1., 2.])
    assert [ax.get_title(loc=side) for ax in fig.axes for side in ('left', 'center', 'right')] == ['']*3*len(fig.axes)

def test_nothing_global_changes():
    import matplotlib, matplotlib.pyplot as plt
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); before = dict(matplotlib.rcParams)
    state = np.random.get_state()[1].tolist()
    for kind in KINDS: svg(draw(kind, ['a', 'b'], [1.0, None]))
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); after = dict(matplotlib.rcParams)
    assert {k for k in before if before[k] != after[k]} <= {'backend'} and plt.get_fignums() == []
    assert np.random.get_state()[1].tolist() == state

def test_the_users_settings_do_not_leak_in():
    import matplotlib
    plain = svg(draw('t_bars', ['a', '$b$'], [1.0, -3.0]))
    with matplotlib.rc_context({'figure.facecolor': 'black', 'font.size': 30, 'text.color': 'red',
                                'svg.fonttype': 'path', 'axes.unicode_minus': False, 'figure.dpi': 33}):
        assert svg(draw('t_bars', ['a', '$b$'], [1.0, -3.0])) == plain

def test_saving(tmp_path):
    for kind in KINDS:
        fig = draw(kind, ['a', 'b'], [1.0, None], title='t')
        paths = save_figure(fig, tmp_path / 'deep' / f'{kind}-v5.4')
        first = [p.read_bytes() for p in paths]
        assert [p.name for p in paths] == [f'{kind}-v5.4.svg', f'{kind}-v5.4.png'] and first[1].startswith(b'\x89PNG')
        assert len(first[1]) < 100_000
        assert b'dc:date' not in first[0] and b'Matplotlib v' not in first[0]
        if kind == 'heatmap': assert [p.read_bytes() for p in save_figure(fig, paths[0].with_suffix(''))] == first
        assert [p.read_bytes() for p in save_figure(draw(kind, ['a', 'b'], [1.0, None], title='t'),
                                                    tmp_path / 'again')] == first
    assert len(list((tmp_path / 'deep').iterdir())) == 10

def test_saving_in_another_process_gives_the_same_bytes(tmp_path):
    code = ('import sys, pandas as pd; from factlib.report.figures.heatmap import heatmap; from '
            'factlib.report.figures.style import save_figure; '
        'save_figure(heatmap(pd.DataFrame(dict(a=["x", "y"], b="c", v=[1.5, None])), "a", "b", "v", title="t"), '
        'sys.argv[1])')
    subprocess.run([sys.executable, '-c', code, str(tmp_path / 'one')], check=True)
    save_figure(heatmap(pd.DataFrame(dict(a=['x', 'y'], b='c', v=[1.5, None])), 'a', 'b', 'v', title='t'),
                tmp_path / 'two')
    for kind in ('svg', 'png'):
        assert (tmp_path / f'one.{kind}').read_bytes() == (tmp_path / f'two.{kind}').read_bytes()

def test_a_large_png_is_reported_and_keeps_its_colours(tmp_path):
    "Fewer colours must not turn the end of a colour bar grey."
    from PIL import Image
    import matplotlib
    rng = np.random.default_rng(0)
    frame = pd.DataFrame([dict(r=f'row {i}', c=f'column {j}', v=rng.normal(-.5, .6) if rng.random() > .1 else None)
                          for i in range(7) for j in range(30)])
    fig = heatmap(frame, 'r', 'c', 'v')
    with pytest.warns(UserWarning, match='kB'): _, png = save_figure(fig, tmp_path / 'h', dpi=300)
    got = np.asarray(Image.open(png).convert('RGB'), int)
    x0, y0, x1, y1 = fig.axes[1].get_position().extents
    for part in np.linspace(.03, .97, 15):
        pixel = got[int((1 - y0 - part * (y1 - y0)) * got.shape[0]), int((x0 + x1) / 2 * got.shape[1])]
        assert np.abs(pixel - 255 * np.array(matplotlib.colormaps['RdBu'].resampled(21)(part)[:3])).max() < 45

def test_shows_itself_once_in_a_notebook(capsys):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    InteractiveShell.instance()
    with capture_output() as out:
        result = InteractiveShell.instance().display_formatter.format(draw('t_bars', ['a'], [1.0], title='T $x$'))
    assert result == ({}, {}) and len(out.outputs) == 1
    assert out.outputs[0].data['text/plain'] == 'Figure: T $x$'
    assert out.outputs[0].metadata == {'image/png': {'width': 700}}

def test_colours_are_stable_and_apart():
    assert palette(['x', 'fluency'])['fluency'] == palette(['coherence', 'fluency', 'y'])['fluency']
    names = [f'm{i}' for i in range(8)]
    assert len(set(palette(names).values())) == 8 and len(palette(names * 2 + ['more'])) == 9
    first = palette(names)
    assert palette(names[3:5], first) == {n: first[n] for n in names[3:5]}

def test_importing_is_light():
    code = ('import sys, factlib.report.figures.style, factlib.report.tables; print([m for m in ("matplotlib", '
            '"seaborn", "IPython", "jinja2", "scipy") if m in sys.modules])')
    assert subprocess.run([sys.executable, '-c', code], capture_output=True,
                          text=True, check=True).stdout.strip() == '[]'

def test_a_panel_without_any_row_is_drawn_as_such():
    frame = pd.DataFrame([dict(x='a', m='M', y=1.0, p='P'), dict(x='b', m='M', y=2.0, p='P')])
    fig = delta_lines(frame, 'x', 'y', 'm', facet='p', order_facets=['P', 'Q'])
    assert 'no data' in svg(fig)

@pytest.mark.parametrize('kind', ['png', 'svg'])
def test_arrows_of_a_network_end_at_its_boxes_in_the_first_drawing(kind):
    "A second one knows how large the boxes are; they would hide the heads of arrows that go on to their centres."
    fig = network(pd.DataFrame([dict(subject='Helen', predicate='fears', object='Roylott')]))
    first, fig.stale = style.figure_bytes(fig, kind, 100), True
    assert style.figure_bytes(fig, kind, 100) == first

@pytest.mark.parametrize('label, width, lines', [
    ('consistency, claude-3-5-haiku-20241022', 20, ['consistency, claude-', '3-5-haiku-20241022']),
    ('consistency, mistral-7b-instruct-v0.3', 20, ['consistency,', 'mistral-7b-instruct-', 'v0.3']),
    ('FActScore, gpt-4o-mini: 95\N{NO-BREAK SPACE}%', 26, ['FActScore, gpt-4o-mini:', '95\N{NO-BREAK SPACE}%']),
    ('a state-of-the-art one', 16, ['a', 'state-of-the-art', 'one']), # it fits into a line
    ('see ' + 'x'*30, 20, ['see ' + 'x'*16, 'x'*14])])
def test_names_of_models_are_broken_behind_their_hyphens(label, width, lines):
    assert style.shown_label(label, width).split('\n') == lines

def test_people_in_as_many_edges_stand_as_they_were_read():
    "Before, the order of a set decided, which differs from process to process, and with it the figure."
    from factlib.report.figures.network import graph_part
    pairs = [(f'{i} from', f'{i} to') for i in range(12)]
    frame = pd.DataFrame([dict(subject=s, predicate='knows', object=o) for s, o in pairs])
    assert graph_part(frame, people=24)[0] == [name for pair in pairs for name in pair]

@pytest.mark.parametrize('name', ['裁判', '심판', '判定者', 'محكم', 'न्यायाधीश'])
def test_names_in_other_scripts_are_legible_where_a_browser_draws(name, recwarn):
    "In the SVG they are text; the page shows that. A terminal sees one sentence, not a warning for each letter."
    from factlib.report.figures.style import figure_bytes, needs_browser
    from factlib.report.figures.violins import violins
    rows = pd.DataFrame(dict(texts=[name]*4, value=[1., 2., 3., 4.]))
    fig = violins(rows, x='texts', y='value', title='Scores')
    svg = figure_bytes(fig, 'svg').decode()
    figure_bytes(fig, 'png')
    assert name in svg and not [w for w in recwarn if 'missing from' in str(w.message)]
    assert needs_browser(fig) or 'Noto' in svg or 'CJK' in svg # or an installed font has it
    assert not needs_browser(violins(rows.assign(texts='rouge1'), x='texts', y='value', title='Scores'))

def test_letters_come_from_another_installed_font(monkeypatch):
    """A sign that STIX has (it comes with matplotlib) and DejaVu Sans lacks. Both are listed here, since matplotlib's own
    list may be an older one, of fonts that were installed then."""
    from matplotlib import font_manager, get_data_path
    from factlib.report.figures import style
    monkeypatch.setattr(font_manager.fontManager, 'ttflist', list(font_manager.fontManager.ttflist))
    for name in ('STIXGeneral', 'DejaVuSans'):
        font_manager.fontManager.addfont(Path(get_data_path())/f'fonts/ttf/{name}.ttf')
    style._characters.cache_clear()
    extra = min(style._characters('STIXGeneral') - style._characters('DejaVu Sans') - set(range(0x300)))
    monkeypatch.setattr(style, '_FONTS', ('No such font', 'STIXGeneral'))
    style._fonts_for.cache_clear()
    fig = style.styled(lambda frame, title=None: figure_with(frame))(pd.DataFrame(dict(x=[chr(extra)])))
    style._fonts_for.cache_clear()
    assert fig.texts[0].get_fontfamily() == ['DejaVu Sans', 'STIXGeneral']

def test_a_font_that_was_installed_since_is_found(monkeypatch, recwarn):
    """matplotlib lists the fonts once and keeps the list. Before, who installed what the sentence names saw boxes and the
    same sentence again."""
    from matplotlib import font_manager, get_data_path
    from factlib.report.figures import style
    fonts = Path(get_data_path())/'fonts'/'ttf'
    monkeypatch.setattr(font_manager.fontManager, 'ttflist', [])
    font_manager.fontManager.addfont(fonts/'DejaVuSans.ttf')
    found = [str(fonts/'STIXGeneral.ttf'), str(fonts/'no such font.ttf')]
    monkeypatch.setattr(font_manager, 'findSystemFonts', lambda *_, **__: found)
    monkeypatch.setattr(style, '_FONTS', ('STIXGeneral',))
    monkeypatch.setattr(style, '_OWN_FONT', 'DejaVu Sans')
    clear = lambda: [f.cache_clear() for f in (style._characters, style._fonts_for, style._look_for_new_fonts,
                                               style._say_undrawn)]
    clear()
    stix = frozenset(font_manager.get_font(found[0]).get_charmap())
    extra = chr(min(stix - style._characters('DejaVu Sans') - set(range(0x300))))
    draw = style.styled(lambda frame, title=None: figure_with(frame))
    try:
        assert draw(pd.DataFrame(dict(x=[extra]))).texts[0].get_fontfamily() == ['DejaVu Sans', 'STIXGeneral']
        assert not recwarn.list
        with pytest.warns(UserWarning, match='install one'): draw(pd.DataFrame(dict(x=['\U0001f9ff' + extra])))
    finally: clear()

def figure_with(frame):
    from matplotlib.figure import Figure
    fig = Figure()
    fig.text(0, 0, frame.x[0])
    return fig
