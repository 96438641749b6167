'use strict';
// What a page can't do with forms and links alone. Everything here has a way without it.

const formKey = () => document.querySelector('input[name=form_key]')?.value ?? '';

async function ask(address, options = {}) {
  const response = await fetch(address, { credentials: 'same-origin', ...options });
  if (response.ok) return response;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  throw new Error(page.querySelector('.problem')?.textContent ?? `The server answered ${response.status}.`);
}

function complain(place, error) {
  const known = place.querySelector('.problem.fresh');
  const box = known ?? Object.assign(document.createElement('p'), { className: 'problem fresh' });
  box.setAttribute('role', 'alert');
  box.textContent = error instanceof TypeError ? 'The server does not answer. Start it again in the terminal, and open the address that it shows.' : error.message;
  if (!known) place.prepend(box);
}

// A job: progress until it ends, then the page as it is now.
async function follow(box) {
  const bar = box.querySelector('progress'), note = box.querySelector('.note');
  for (;;) {
    try {
      const job = await (await ask(`../jobs/${box.dataset.job}`)).json();
      if (job.state !== 'running') return location.reload();
      if (job.total) { bar.max = job.total; bar.value = job.done; }
      note.textContent = job.words;
      box.querySelector('.problem.fresh')?.remove();
    } catch (error) { complain(box, error); }
    await new Promise(done => setTimeout(done, 700));
  }
}

// The graph: what its form asks for replaces what is drawn.
let latest = 0;
async function redraw(form) {
  const number = ++latest, view = document.getElementById('graph-view');
  const chosen = new URLSearchParams(location.search); // the links in the drawing keep the rest of what is chosen
  chosen.set('tau', form.tau.value);
  chosen.set('about', form.about.value);
  const address = `${form.dataset.view}?${chosen}`;
  form.querySelector('output').textContent = form.tau.value;
  try {
    const html = await (await ask(address)).text();
    if (number === latest) view.innerHTML = html;
  } catch (error) { complain(view, error); }
}

function keepThreshold(form) {
  const body = new URLSearchParams({ tau: form.tau.value, form_key: formKey() });
  ask(form.action, { method: 'POST', body }).catch(error => complain(document.getElementById('graph-view'), error));
}

document.addEventListener('DOMContentLoaded', () => {
  document.querySelectorAll('[data-job]').forEach(follow);
  const form = document.querySelector('form[data-view]');
  if (form) {
    form.querySelectorAll('.without-script').forEach(element => element.remove());
    form.tau.addEventListener('input', () => redraw(form));
    form.tau.addEventListener('change', () => keepThreshold(form));
    form.about.addEventListener('change', () => redraw(form));
  }
});

document.addEventListener('click', event => {
  const label = event.target.closest?.('a[data-about]'), form = document.querySelector('form[data-view]');
  if (!label || !form) return;
  event.preventDefault();
  form.about.value = label.dataset.about;
  redraw(form);
});

document.addEventListener('submit', event => {
  const form = event.target, file = form.querySelector('input[type=file]')?.files?.[0];
  const most = Number(form.dataset.most ?? Infinity);
  if (file && file.size > most) {
    event.preventDefault();
    return complain(form, new Error(`The file has ${Math.ceil(file.size / 1e6)} MB; at most ${Math.floor(most / 1e6)} MB can be read. Give a part of it.`));
  }
  setTimeout(() => form.querySelectorAll('button').forEach(button => { button.disabled = true; }), 0); // one click, one start
});

window.addEventListener('pageshow', event => { // back again: buttons can be pressed
  if (event.persisted) document.querySelectorAll('button').forEach(button => { button.disabled = false; });
});
