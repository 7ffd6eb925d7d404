// `pennon import fetch` as a process: how it ends, and what it tells to whom.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type StandInOptions, startMixpanel } from '../support/export-stand-in.ts'
import { rawFiles } from '../support/fetching.ts'
import { runCommand, startCommand } from '../support/pennon-command.ts'
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
  it('takes the secret from a file, and writes it nowhere', async t => {
    const { standIn, folder, job, options } = await aProject(t)
    writeFileSync(join(folder, 'secret'), `${secret}\n`)
    const env = { MIXPANEL_API_SECRET_FILE: join(folder, 'secret') }
    const { exitCode, stdout, stderr } = await runCommand(env, 'import', 'fetch', job, ...options, '--json')
    assert.equal(exitCode, 0, stderr)
    assert.equal((JSON.parse(stdout) as { partsDone: number }).partsDone, 3)
    assert.equal(standIn.asked[0]!.authorization, `Basic ${Buffer.from(`${secret}:`).toString('base64')}`)
    for (const name of readdirSync(job, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()))
      assert.ok(!readFileSync(join(name.parentPath, name.name)).includes(secret), name.name)
  })

  it('ends with exit code 2 and one line that says what to do, when it cannot begin or go on', async t => {
    const { job, options } = await aProject(t, {
      faultOf: () => ({ kind: 'status', status: 401, body: `not ${secret}` }),
    })
    const env = { MIXPANEL_API_SECRET: secret }
    for (const [settings, args, complaint] of [
      [{}, options, /^pennon: Set MIXPANEL_API_SECRET \(or MIXPANEL_API_SECRET_FILE/],
      [env, [], /^pennon: Give --source: nothing has been fetched/],
      [env, ['--source', 'mixpanel'], /^pennon: mixpanel needs from and to/],
      [env, options, /^pennon: Mixpanel answers 401: not …\. Check the key/],
    ] as const) {
      const { exitCode, stderr } = await runCommand(settings, 'import', 'fetch', job, ...args)
      assert.match(stderr, complaint)
      assert.deepEqual([exitCode, stderr.trimEnd().split('\n').length], [2, 1])
    }
  })

  it('ends at Ctrl-C with what has come, and says how to go on', async t => {
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
    assert.equal(stderr, `pennon: stopped. What has come is kept; it goes on with: pennon import fetch ${job}\n`)
    const again = await runCommand(env, 'import', 'fetch', job)
    assert.equal(again.exitCode, 0, again.stderr)
    assert.match(again.stdout, /^3 parts/)
  })

  it('refuses a folder that another process fetches into, and not one whose process was killed', async t => {
    const { standIn, job, options } = await aProject(t, {
      faultOf: ({ times }) => (times === 1 ? { kind: 'status', status: 429, retryAfter: '3600' } : null),
    })
    const env = { MIXPANEL_API_SECRET: secret }
    const { child, ended } = startCommand(env, 'import', 'fetch', job, ...options)
    await eventually(() => standIn.asked.length >= 3)
    const { exitCode, stderr } = await runCommand(env, 'import', 'fetch', job)
    assert.deepEqual(
      [exitCode, stderr],
      [2, `pennon: Another process fetches into ${job}. Wait for its end, or stop it.\n`],
    )
    child.kill('SIGKILL')
    await ended
    const again = await runCommand(env, 'import', 'fetch', job)
    assert.match(again.stdout, /^3 parts/, again.stderr)
  })
})
