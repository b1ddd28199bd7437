// The page, opened as a file in Chromium without a window: run B trains to 97 %, both checks say ok, each
// choice of a norm works, the keyboard reaches every control, nothing is wider than 400 pixels, and the
// browser reports no error. Pictures of it go beside the page.
//
//     node tests/scripts/page.mjs build/page/index.html CHROMIUM
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve, dirname, join } from 'node:path';

const [page, browser] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'page-'));
const chromium = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
  `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

/* ---- DevTools' protocol: messages that a zero byte ends ---- */

const waiting = new Map(), complaints = [];
let count = 0, rest = '', session;
chromium.stdio[4].setEncoding('utf8').on('data', data => {
  const parts = (rest + data).split('\0');
  rest = parts.pop();
  for (const part of parts) {
    const { id, result, error, method, params } = JSON.parse(part);
    if (method === 'Runtime.exceptionThrown') complaints.push(params.exceptionDetails.exception?.description);
    if (method === 'Runtime.consoleAPICalled' && params.type !== 'log') complaints.push(JSON.stringify(params.args));
    if (method === 'Log.entryAdded') complaints.push(params.entry.text);
    if (id) waiting.get(id)(error ? { error } : result);
  }
});
const call = (method, params = {}) => new Promise((done, failed) => {
  waiting.set(++count, result => result.error ? failed(new Error(`${method}: ${result.error.message}`)) : done(result));
  chromium.stdio[3].write(JSON.stringify({ id: count, method, params, sessionId: session }) + '\0');
});
const evaluate = async text => (await call('Runtime.evaluate', { expression: text, awaitPromise: true, returnByValue: true })).result.value;
async function until(text, what) {
  for (let i = 0; i < 3000; i++, await new Promise(done => setTimeout(done, 100)))
    if (await evaluate(text)) return;
  throw new Error(`after five minutes: not ${what}`);
}
const expect = (holds, what) => { if (!holds) throw new Error(what); };

/* ---- The test ---- */

async function look(width, scheme) {
  await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  await call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
  expect(await evaluate('document.documentElement.scrollWidth <= innerWidth'), `it is wider than ${width} pixels`);
  const { data } = await call('Page.captureScreenshot', { captureBeyondViewport: true });
  writeFileSync(join(dirname(page), `page-${width}-${scheme}.png`), Buffer.from(data, 'base64'));
}

async function test() {
  const { targetInfos } = await call('Target.getTargets');
  const { targetId } = targetInfos.find(t => t.type === 'page');
  session = (await call('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  for (const domain of ['Page', 'Runtime', 'Log']) await call(`${domain}.enable`);
  await call('Page.navigate', { url: `file://${resolve(page)}` });
  await until('typeof wasm === "object" && wasm && document.querySelectorAll("svg text").length > 0', 'loaded');

  // By keyboard: Train is the first control after the link, and Enter presses it.
  const key = async (name, text) => {
    for (const type of ['keyDown', 'keyUp']) await call('Input.dispatchKeyEvent', { type, key: name, code: name, text, windowsVirtualKeyCode: name === 'Tab' ? 9 : 13 });
  };
  const reached = [];
  for (let i = 0; i < 11; i++) {
    await key('Tab');
    reached.push(await evaluate('document.activeElement.id || document.activeElement.tagName'));
    if (reached[reached.length - 1] === 'train') await key('Enter', '\r');
  }
  expect(reached.filter(name => name === 'SELECT').length === 6, `Tab reaches ${reached}`);
  await until('step >= 2000', 'trained');
  const accuracy = await evaluate('Math.max(...runs.map(run => +run.said.dataset.accuracy))');
  expect(accuracy >= 0.97, `the better run ends at an accuracy of ${accuracy}`);
  await evaluate('runs.forEach(run => run.check.click())');
  await until('runs.every(run => run.checked.dataset.ok)', 'checked');
  const said = await evaluate('runs.map(run => run.checked.textContent)');
  expect(said.every(text => text.startsWith('ok: ')), said.join('; '));
  for (const width of [400, 1300]) for (const scheme of ['light', 'dark']) await look(width, scheme);

  // Every norm learns; a learning rate that is too high ends a run with a sentence, and not the page.
  for (const norm of await evaluate('Object.keys(norms)')) {
    await evaluate(`runs[0].norm.value = "${norm}", runs[1].lr.value = "0.1", runs[0].norm.onchange(), byId("train").click()`);
    await until('step >= 300', `trained with ${norm}`);
    await evaluate('training && byId("train").click()');
    expect(await evaluate('+runs[0].said.dataset.accuracy > 0.5'), `${norm} does not learn`);
  }
  expect(complaints.length === 0, `the browser reports: ${complaints.join('; ')}`);
  console.log(`page: it trains to ${accuracy.toFixed(3)}; ${said[1]}`);
}

test().catch(error => { console.error(`page: ${error.message}`); process.exitCode = 1; })
  .finally(() => { chromium.once('exit', () => rmSync(profile, { recursive: true, force: true })).kill(); });
