'use strict';
// Keys, the clock, and what is said when nothing was saved. All that is asked can be answered without this.

const here = document.body, answer = document.getElementById('answer');
const draw = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), n => n.toString(16).padStart(2, '0')).join('');

// The clock runs while the page is to be seen, and goes on behind a reload.
const clockName = `seconds ${location.pathname} ${here.dataset.item}`;
let spent = 0, since = null;
try { spent = Number(sessionStorage.getItem(clockName)) || 0; } catch { /* no storage in this frame */ }
function tick() {
  const now = performance.now();
  if (since !== null) spent += (now - since) / 1000;
  since = document.visibilityState === 'visible' ? now : null;
  return spent;
}
function keepClock(seconds) {
  spent = seconds;
  try { sessionStorage.setItem(clockName, String(seconds)); } catch { /* as above */ }
}
tick();
document.addEventListener('visibilitychange', () => keepClock(tick()));
addEventListener('pagehide', () => keepClock(tick()));

// What couldn't be saved stays on the page, and can be sent again under the same number.
function complain(words, again) {
  let box = document.getElementById('not-saved');
  if (!box) {
    box = Object.assign(document.createElement('div'), { id: 'not-saved', className: 'not-saved' });
    box.setAttribute('role', 'alert');
    document.querySelector('main').append(box);
  }
  const strong = document.createElement('strong'), button = document.createElement('button');
  strong.textContent = 'Not saved.';
  button.textContent = 'Send again';
  button.type = 'button';
  button.addEventListener('click', again);
  box.replaceChildren(strong, ` ${words} `, button);
  button.focus();
}

let busy = false, pending = Promise.resolve(true);
async function post(address, body) {
  const response = await fetch(address, { method: 'POST', body, credentials: 'same-origin' });
  if (response.ok) return response.json();
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  throw new Error(page.querySelector('.problem')?.textContent ?? `The server answered ${response.status}.`);
}

// stays: the page is not left, as with marks in a source.
async function send(form, button, stays) {
  if (busy && !stays) return;
  const body = new URLSearchParams(new FormData(form, button ?? undefined));
  body.set('press', draw());
  body.set('script', '1');
  if (body.has('seconds')) body.set('seconds', tick().toFixed(3));
  const attempt = async () => {
    if (!stays) { busy = true; here.setAttribute('aria-busy', 'true'); }
    try {
      const { go } = await post(form.action, body);
      document.getElementById('not-saved')?.remove();
      if (form === answer) keepClock(stays ? 0 : (since = null, 0));
      if (stays) { since = performance.now(); return true; }
      location.replace(go);
    } catch (error) {
      busy = false;
      here.removeAttribute('aria-busy');
      complain(error instanceof TypeError ? 'The server does not answer. It may have to be started again.' : error.message, attempt);
      return false;
    }
  };
  if (stays) return (pending = pending.then(attempt));
  if (await pending) return attempt(); // marks that are on their way come first
  pending = Promise.resolve(true);
  return attempt();
}

document.addEventListener('submit', event => {
  const form = event.target;
  if (form.method === 'dialog' || form.dataset.plain !== undefined) return;
  event.preventDefault();
  send(form, event.submitter, false);
});

// The codebook opens in the page, and differences come without leaving it.
async function swap(link) {
  const part = document.getElementById(link.dataset.swap);
  try {
    const response = await fetch(link.href, { credentials: 'same-origin' });
    if (!response.ok) throw new Error();
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    part.replaceWith(page.getElementById(link.dataset.swap));
  } catch { location.assign(link.href); }
}

document.addEventListener('click', event => {
  const link = event.target.closest?.('a[data-opens], a[data-swap]');
  if (!link) return;
  event.preventDefault();
  if (link.dataset.swap) swap(link);
  else document.getElementById(link.dataset.opens).showModal();
});

// Keys: digits go to the question with the focus, else to the one that is open.
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const at = document.activeElement, typing = at?.matches?.('textarea, select, input:not([type=checkbox])');
  if (typing) { if (event.key === 'Escape') at.blur(); return; }
  if (event.key === 'Enter' && at?.matches?.('button, a, summary, input')) return;
  if (arrows(event, at)) return;
  const wanted = `[data-key="${CSS.escape(event.key)}"]`;
  const scope = at?.closest?.('[data-scope]') ?? document.querySelector('[data-scope][data-now]') ?? document.querySelector('[data-scope]');
  const found = scope?.querySelector(wanted) ?? (/^[0-9]$/.test(event.key) ? null : document.querySelector(wanted));
  if (!found || found.disabled || found.hidden) return;
  event.preventDefault();
  found.click();
  if (found.matches('summary')) found.parentElement.querySelector('textarea')?.focus();
});

// Marks in a source: one tab stop, arrows from sentence to sentence, space marks; or the words that are selected.
const boxes = () => [...document.querySelectorAll('.sentence input')];
function arrows(event, at) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (!step || !at?.matches?.('.sentence input')) return false;
  const all = boxes(), next = all[all.indexOf(at) + step];
  event.preventDefault();
  if (!next) return true;
  at.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  next.parentElement.scrollIntoView({ block: 'nearest' });
  return true;
}
boxes().forEach((box, i) => { box.tabIndex = i ? -1 : 0; });
document.querySelector('.source')?.addEventListener('focusin', event => {
  if (event.target.matches('.sentence input')) boxes().forEach(box => { box.tabIndex = box === event.target ? 0 : -1; });
});
answer?.addEventListener('change', event => {
  if (event.target.name === 'mark') send(answer, document.getElementById('keep-evidence'), true);
});

function place(node, offset) { // in code points, as the store counts
  const part = (node.nodeType === 3 ? node.parentElement : node).closest('[data-start]');
  if (!part || !part.closest('.source')) return null;
  const range = document.createRange();
  range.setStart(part, 0);
  range.setEnd(node, offset);
  return Number(part.dataset.start) + [...range.toString()].length;
}
function selected() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0), start = place(range.startContainer, range.startOffset), end = place(range.endContainer, range.endOffset);
  return start !== null && end !== null && start < end ? [start, end, selection.toString()] : null;
}
const marker = document.getElementById('mark-selection');
if (marker) {
  document.addEventListener('selectionchange', () => { marker.hidden = !selected(); });
  marker.addEventListener('mousedown', event => event.preventDefault()); // the selection stays
  marker.addEventListener('click', () => {
    const found = selected();
    if (!found) return;
    const [start, end, quote] = found, value = `${start}-${end}`;
    const known = [...answer.querySelectorAll('[name=mark]')].find(box => box.value === value);
    if (known) known.checked = true;
    else {
      const line = document.createElement('li'), label = document.createElement('label'), words = document.createElement('q');
      const box = Object.assign(document.createElement('input'), { type: 'checkbox', name: 'mark', value, checked: true });
      words.dir = 'auto';
      words.textContent = quote;
      label.append(box, ' ', words);
      line.append(label);
      document.getElementById('marks').append(line);
    }
    getSelection().removeAllRanges();
    send(answer, document.getElementById('keep-evidence'), true);
  });
}
document.querySelector('.source')?.addEventListener('click', event => { // selecting words is no click on their sentence
  if (selected() && event.target.closest('.sentence')) event.preventDefault();
});
