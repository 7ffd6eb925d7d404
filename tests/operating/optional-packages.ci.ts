// An instance without its optional packages, with a damaged one, and the packages that each process loads.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { mustSucceed, runCommand } from '../support/pennon-command.ts'
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'
import { runInTree, treeWithout } from '../support/tree-without.ts'

const flag = { key: 'on-for-all', active: true, filters: { groups: [{ properties: [], rollout_percentage: 100 }] } }
/** An address with a location in the GeoIP data. */
const placed = { properties: { $ip: '12.87.118.0' } }

async function isFlagOn(pennon: Pennon): Promise<boolean> {
  await pennon.api('POST', '/api/projects/@current/feature_flags/', flag)
  const answer = await pennon.post('/flags?v=2', { token: testProjectKey, distinct_id: 'ada' })
  const { flags } = (await answer.json()) as { flags: Record<string, { enabled: boolean }> }
  return flags[flag.key]!.enabled
}

async function capture(pennon: Pennon): Promise<void> {
  const event = { api_key: testProjectKey, event: 'order placed', distinct_id: 'ada', ...placed }
  assert.equal((await pennon.post('/capture/', event)).status, 200)
}

describe('optional packages', () => {
  it('without them, an instance with CLICKHOUSE_URL serves flags and accepts events', async t => {
    const engine = await startEngine()
    t.after(() => engine.stop())
    const { url, writer, database } = engine.endpoint()
    const pennon = await startPennonFor(t, {
      tree: treeWithout(t, ['chdb', '@chdb', '@aws-sdk', '@smithy', '@ip-location-db']),
      settings: {
        CLICKHOUSE_URL: `${url.replace('://', `://${writer.username}:${writer.password}@`)}/${database}`,
        PENNON_LOG_LEVEL: 'info',
      },
    })
    assert.ok(await isFlagOn(pennon))
    await capture(pennon)
    await pennon.caughtUp()
    const events = '/api/projects/@current/events/?distinct_id=ada'
    const { results } = await pennon.api<{ results: { event: string; properties: object }[] }>('GET', events)
    assert.deepEqual(
      results.map(({ event, properties }) => [event, Object.keys(properties).filter(key => /geoip/.test(key))]),
      [['order placed', []]],
    )
    assert.deepEqual(Object.keys(pennon.childPids()), ['work'])
    assert.equal(pennon.output().match(/No GeoIP database .*Set GEOIP_DATABASE .*npm install/g)?.length, 1)
  })

  it('without them, the events of a backup cannot be verified, and the reason is given', async t => {
    const folder = tempDir(t)
    const dataFolder = join(folder, 'data')
    const pennon = await startPennonFor(t, { dataFolder })
    await capture(pennon)
    await pennon.caughtUp()
    const file = join(folder, 'backup.tar')
    mustSucceed(await runCommand({ PENNON_DATA: dataFolder }, 'backup', file))
    const tree = treeWithout(t, ['chdb', '@chdb'])
    assert.match(
      await refusedStart(join(folder, 'other'), {}, { tree, arguments: ['backup', '--verify', file] }),
      /^pennon: The embedded event store is not installed \(package_missing: chdb\), which is needed to count the events of a backup: run `npm/,
    )
    assert.deepEqual(readdirSync(folder).toSorted(), ['backup.tar', 'data'])
  })

  it('a damaged package is distinguished from a missing one, with the reason why its library cannot be loaded', async t => {
    const tree = treeWithout(t, ['@chdb'])
    for (const name of readdirSync('node_modules/@chdb')) {
      const folder = join(tree, 'node_modules/@chdb', name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `@chdb/${name}`, version: '1.0.0' }))
      writeFileSync(join(folder, 'libchdb.so'), 'no library')
    }
    const pennon = await startPennonFor(t, { tree, waitForProcessing: false })
    assert.ok(await isFlagOn(pennon))
    const reason = /its library cannot be loaded \(dlopen failed: .*libchdb\.so.*\); run `pennon doctor`/
    await eventually(() => reason.test(pennon.output()), { what: 'the reason' })

    const { status, stdout } = runInTree(t, tree, 'doctor')
    assert.equal(status, 1)
    assert.match(
      stdout,
      /^FAIL +event store +The embedded event store is installed but cannot be loaded \(.*libchdb\.so.*\)\n +→ .*CLICKHOUSE_URL/m,
    )
  })

  it('only the process that uses a package loads it: neither front nor worker loads the event store or S3', async t => {
    const folder = tempDir(t)
    const recorder = join(folder, 'recorder.mjs')
    writeFileSync(
      recorder,
      `import { appendFileSync } from 'node:fs'
       import { registerHooks } from 'node:module'
       registerHooks({
         load(url, context, nextLoad) {
           appendFileSync(${JSON.stringify(folder)} + '/' + process.pid, url + '\\n')
           return nextLoad(url, context)
         },
       })`,
    )
    const pennon = await startPennonFor(t, { settings: { NODE_OPTIONS: `--import=${recorder}` } })
    assert.ok(await isFlagOn(pennon))
    await capture(pennon)
    await pennon.caughtUp()
    const { work, events } = pennon.childPids()
    for (const pid of [pennon.pid, work!]) {
      const loaded = readFileSync(join(folder, String(pid)), 'utf8').split('\n')
      assert.ok(loaded.some(url => url.includes('/node_modules/@clickhouse/client')))
      assert.deepEqual(
        loaded.filter(url => /\/node_modules\/@?(chdb|aws-sdk|smithy)\//.test(url)),
        [],
      )
    }
    if (process.platform !== 'linux') return
    const hasLibrary = (pid: number) => readFileSync(`/proc/${pid}/maps`, 'utf8').includes('libchdb')
    assert.deepEqual([pennon.pid, work!, events!].map(hasLibrary), [false, false, true])
  })
})
