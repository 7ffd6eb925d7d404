// `pennon import fetch` as a process: its exit codes and its output.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type StandInOptions, startMixpanel } from '../support/export-stand-in.ts'
import { rawFiles } from '../support/fetching.ts'
import { callCommand, mustSucceed, refusalOf, startCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const range = ['--from', '2024-05-01', '--to', '2024-05-03']
const secret = 'geheim-of-mixpanel'

async function aProject(t: TestContext, options: Partial<StandInOptions> = {}) {
  const lines = new Map(['2024-05-01', '2024-05-02', '2024-05-03'].map(day => [day, [`{"event":"${day}"}`]]))
  const standIn = await startMixpanel({ lines, ...options })
  t.after(() => standIn.stop())
  const folder = tempDir(t)
  return {
    standIn,
    folder,
    job: join(folder, 'job'),
    options: ['--source', 'mixpanel', '--host', standIn.url, ...range],
  }
}

describe('pennon import fetch', () => {
  it('the secret is read from a file and written nowhere', async t => {
    const { standIn, folder, job, options } = await aProject(t)
    writeFileSync(join(folder, 'secret'), `${secret}\n`)
    const env = { MIXPANEL_API_SECRET_FILE: join(folder, 'secret') }
    const { stdout } = mustSucceed(await callCommand(env, 'import', 'fetch', job, ...options, '--json'))
    assert.equal((JSON.parse(stdout) as { partsDone: number }).partsDone, 3)
    assert.equal(standIn.asked[0]!.authorization, `Basic ${Buffer.from(`${secret}:`).toString('base64')}`)
    for (const name of readdirSync(job, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()))
      assert.ok(!readFileSync(join(name.parentPath, name.name)).includes(secret), name.name)
  })

  it('a fetch that cannot start or continue exits with code 2 and one line that says what to do', async t => {
    const { job, options } = await aProject(t, {
      faultOf: () => ({ kind: 'status', status: 401, body: `not ${secret}` }),
    })
    const env = { MIXPANEL_API_SECRET: secret }
    for (const [settings, args, complaint] of [
      [{}, options, /^pennon: Set MIXPANEL_API_SECRET \(or MIXPANEL_API_SECRET_FILE/],
      [env, [], /^pennon: Set --source: nothing has been downloaded/],
      [env, ['--source', 'mixpanel'], /^pennon: mixpanel needs from and to/],
      [env, options, /^pennon: Mixpanel answers 401: not …\. Check the key/],
    ] as const) {
      const { exitCode, stderr } = await callCommand(settings, 'import', 'fetch', job, ...args)
      assert.match(stderr, complaint)
      assert.deepEqual([exitCode, stderr.trimEnd().split('\n').length], [2, 1])
    }
  })

  it('a damaged state is reported with a remedy, and fetched files are kept and not fetched again', async t => {
    const { standIn, job, options } = await aProject(t)
    const env = { MIXPANEL_API_SECRET: secret }
    assert.equal((await callCommand(env, 'import', 'fetch', job, ...options)).exitCode, 0)
    const state = join(job, 'fetch.db')
    const whole = readFileSync(state)
    const damages: Record<string, Buffer> = {
      'no database': Buffer.from('nothing that SQLite knows'.repeat(400)),
      'one cut off': whole.subarray(0, 4_096),
      'one with pages of zeros': Buffer.concat([whole.subarray(0, 100), Buffer.alloc(whole.length - 100)]),
    }
    for (const [what, bytes] of Object.entries(damages))
      for (const command of [['fetch'], ['status'], ['plan']]) {
        writeFileSync(state, bytes)
        const { exitCode, stderr } = await callCommand(env, 'import', command[0]!, job)
        const said = `${what}, ${command[0]}: ${stderr}`
        assert.match(stderr, /^pennon: [^\n]*fetch\.db is damaged\. Delete it[^\n]*\n$/, said)
        assert.equal(exitCode, 2, said)
      }
    writeFileSync(state, whole)
    for (const command of ['fetch', 'status']) {
      writeFileSync(join(job, 'fetch.lock'), damages['no database']!)
      assert.match(
        refusalOf(await callCommand(env, 'import', command, job)),
        /fetch\.lock is damaged\. Delete it/,
        command,
      )
    }
    for (const path of [state, join(job, 'fetch.lock')]) rmSync(path)
    assert.equal((await callCommand(env, 'import', 'fetch', job, ...options)).exitCode, 0)
    assert.deepEqual([rawFiles(job).length, standIn.asked.length], [3, 3])
  })

  it('the region may be changed until the first file is stored; after that, another region or export is refused', async t => {
    const { standIn, job, options } = await aProject(t)
    const env = { MIXPANEL_API_SECRET: secret }
    const refusing = await startMixpanel({ lines: new Map(), faultOf: () => ({ kind: 'status', status: 401 }) })
    t.after(() => refusing.stop())
    const wrong = ['--source', 'mixpanel', '--host', refusing.url, '--from', '2024-01-01', '--to', '2024-01-02']
    assert.equal((await callCommand(env, 'import', 'fetch', job, ...wrong)).exitCode, 2)
    const right = mustSucceed(await callCommand(env, 'import', 'fetch', job, ...options))
    assert.match(right.stdout, /^3 parts/)
    const other = refusalOf(
      await callCommand(env, 'import', 'fetch', job, ...options.slice(0, -1), '2024-05-31', '--region', 'eu'),
    )
    assert.match(
      other,
      /holds files of another export: this call says --region eu instead of no --region, --to 2024-05-31 instead of --to 2024-05-03\. Take another folder/,
    )
    assert.equal(standIn.asked.length, 3)
  })

  it('without --source a fetch continues as it was started, and refuses contradicting options', async t => {
    const { job, options } = await aProject(t)
    const env = { MIXPANEL_API_SECRET: secret }
    const fetch = (...given: string[]) => callCommand(env, 'import', 'fetch', job, ...given)
    assert.equal((await fetch(...options)).exitCode, 0)
    mustSucceed(await fetch(...range, '--region', 'us'))
    const other = await fetch('--from', '2024-05-01', '--to', '2024-06-01', '--project-id', '7')
    assert.deepEqual([other.exitCode, other.stdout], [2, ''])
    assert.equal(
      other.stderr,
      `pennon: Without --source the fetch into ${job} continues as it was started, but this call says --to 2024-06-01 instead of --to 2024-05-03, --project-id 7 instead of no --project-id. Omit these options to continue, or start another export, with all its options, in another folder: pennon import fetch OTHER --source mixpanel --from 2024-05-01 --to 2024-06-01 --project-id 7\n`,
    )
  })

  it('the reason for waiting is printed while a source is unreachable', async t => {
    const { standIn, job, options } = await aProject(t)
    await standIn.stop()
    const { child, ended } = startCommand({ MIXPANEL_API_SECRET: secret }, 'import', 'fetch', job, ...options)
    const shown = collectText(child.stderr!)
    await eventually(() => shown().includes('\n') || child.exitCode !== null, { timeoutMs: 120_000 })
    child.kill('SIGINT')
    await ended
    assert.match(
      shown(),
      /^0 of 3 parts, 0 bytes, \d+ (retry|retries), no connection to the source \(ECONNREFUSED\), [^,]+\n/,
    )
    const { stdout } = await callCommand({}, 'import', 'status', job)
    assert.match(
      stdout,
      /^Nothing has been planned yet\.\nDownloaded from mixpanel: 0 of 3 parts\.\nNext: pennon import fetch /,
    )
    assert.match(
      (await callCommand({}, 'import', 'run', job)).stderr,
      /contains a download, but no import is planned yet\. Next: pennon import fetch/,
    )
  })

  it('the fetched files can be planned with the same source, and with no other source', async t => {
    const { job, options } = await aProject(t)
    const fetch = () => callCommand({ MIXPANEL_API_SECRET: secret }, 'import', 'fetch', job, ...options)
    assert.match((await fetch()).stdout, /^3 parts, .*\nNext: pennon import plan \S+job \(selects what is imported/)
    const { stdout } = await callCommand({}, 'import', 'status', job)
    assert.match(stdout, /Downloaded from mixpanel: all 3 parts\.\nNext: pennon import plan /)
    const other = refusalOf(await callCommand({}, 'import', 'plan', job, '--source', 'amplitude'))
    assert.match(other, /contains a download from mixpanel, but --source is amplitude/)
    const planned = await callCommand({}, 'import', 'plan', job)
    assert.match(planned.stdout, /^3 files of mixpanel, \d+ bytes, fetched\.$/m)
    assert.match(
      (await callCommand({}, 'import', 'status', job)).stdout,
      /^Job \S+: 3 files of mixpanel, fetched, planned /,
    )
    assert.match((await fetch()).stdout, /^Next: pennon import run \S+job \(it is already planned\)$/m)
  })

  it('Ctrl-C keeps what was fetched and prints how to continue', async t => {
    const { standIn, job, options } = await aProject(t, {
      faultOf: ({ from, times }) =>
        from === '2024-05-02' && times === 1 ? { kind: 'status', status: 429, retryAfter: '3600' } : null,
    })
    const env = { MIXPANEL_API_SECRET: secret }
    const { child, ended } = startCommand(env, 'import', 'fetch', job, ...options)
    await eventually(() => standIn.asked.length >= 3 && rawFiles(job).some(name => name.endsWith('.gz')))
    child.kill('SIGINT')
    const { exitCode, stderr } = await ended
    assert.equal(exitCode, 130)
    assert.equal(stderr, `pennon: paused. Downloaded files are kept. To continue: pennon import fetch ${job}\n`)
    const again = mustSucceed(await callCommand(env, 'import', 'fetch', job))
    assert.match(again.stdout, /^3 parts/)
  })

  it('a folder is refused while another process fetches into it, and accepted after that process was killed', async t => {
    const { standIn, job, options } = await aProject(t, {
      faultOf: ({ times }) => (times === 1 ? { kind: 'status', status: 429, retryAfter: '3600' } : null),
    })
    const env = { MIXPANEL_API_SECRET: secret }
    const { child, ended } = startCommand(env, 'import', 'fetch', job, ...options)
    await eventually(() => standIn.asked.length >= 3)
    const { exitCode, stderr } = await callCommand(env, 'import', 'fetch', job)
    assert.deepEqual(
      [exitCode, stderr],
      [2, `pennon: Another process fetches into ${job}. Wait for its end, or stop it.\n`],
    )
    child.kill('SIGKILL')
    await ended
    const again = await callCommand(env, 'import', 'fetch', job)
    assert.match(again.stdout, /^3 parts/, again.stderr)
  })
})
