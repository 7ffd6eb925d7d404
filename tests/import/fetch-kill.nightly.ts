// `pennon import fetch` killed with -9 at random moments and restarted: the files equal those of an undisturbed run,
// and no incomplete file ever has its final name. Source: docs/wire/import.md §2.1, §2.4.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { startAmplitude, startMixpanel } from '../support/export-stand-in.ts'
import { fetchSecrets, rawFiles } from '../support/fetching.ts'
import { runCommand, startCommand } from '../support/pennon-command.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { s3Missing, startS3 } from './s3-server.ts'

const killCount = 6
const may = { from: '2024-05-01', to: '2024-05-24' }
const days = divideIntoWindows(may, 1).map(window => window.from)
const range = ['--from', may.from, '--to', may.to]

interface Killed {
  readonly env: Readonly<Record<string, string>>
  readonly options: readonly string[]
  /** Grows with each request to the source. */
  readonly progress: () => number
  /** Kills come up to this long after the first request to the source. */
  readonly spanMs: number
}

/** Complete files, by name. */
function hashes(folder: string): Map<string, string> {
  const names = rawFiles(folder).filter(name => !name.endsWith('.part'))
  return new Map(names.map(name => [name, sha256(readFileSync(join(folder, 'raw', name)))]))
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function assertSurvivesKills(t: TestContext, { env, options, progress, spanMs }: Killed): Promise<void> {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const random = seededRandom(seed)
  const [straight, killed] = [join(tempDir(t), 'straight'), join(tempDir(t), 'killed')]
  const run = await runCommand(env, 'import', 'fetch', straight, ...options)
  assert.equal(run.exitCode, 0, run.stderr)
  const whole = hashes(straight)
  let kills = 0
  for (; kills < killCount; kills++) {
    const before = progress()
    // After the first call, the folder says what to fetch.
    const { child, ended } = startCommand(env, 'import', 'fetch', killed, ...(kills === 0 ? options : []))
    let hasEnded = false
    void ended.then(() => {
      hasEnded = true
    })
    while (progress() === before && !hasEnded) await sleep(5)
    await sleep(random() * spanMs)
    child.kill('SIGKILL')
    const { exitCode, stderr } = await ended
    for (const [name, hash] of hashes(killed)) assert.equal(hash, whole.get(name), `${name} after kill ${kills + 1}`)
    if (exitCode === 0) break
    assert.equal(stderr.includes('pennon:'), false, stderr)
  }
  t.diagnostic(`${kills} kills, ${hashes(killed).size} of ${whole.size} files whole before the last start`)
  assert.ok(kills >= 3, 'the fetch ended before it was killed')
  const last = await runCommand(env, 'import', 'fetch', killed)
  assert.equal(last.exitCode, 0, last.stderr)
  assert.deepEqual(hashes(killed), whole)
  const { isComplete, parts } = readFetchedParts(killed)!
  assert.ok(isComplete)
  assert.deepEqual(
    parts.map(({ object, sha256: hash }) => [object.slice('raw/'.length), hash]).sort(),
    [...whole].sort(),
  )
  assert.deepEqual(
    rawFiles(killed).filter(name => name.endsWith('.part')),
    [],
  )
}

describe('a fetch that is killed and restarted', () => {
  it('a killed Mixpanel fetch ends with the same bytes as an undisturbed one', async t => {
    const lines = new Map(
      days.map(day => [day, [1, 2, 3].map(n => `{"event":"e","properties":{"$insert_id":"${day}-${n}"}}`)]),
    )
    const standIn = await startMixpanel({ lines, slowMs: 150 })
    t.after(() => standIn.stop())
    const options = ['--source', 'mixpanel', '--host', standIn.url, '--calls-per-hour', '100000', ...range]
    await assertSurvivesKills(t, { env: fetchSecrets, options, progress: () => standIn.asked.length, spanMs: 700 })
  })

  it('a killed Amplitude fetch whose windows are split ends with the same bytes as an undisturbed one', async t => {
    const lines = new Map(
      days.flatMap(day => ['T03', 'T22'].map(hour => [`${day.replaceAll('-', '')}${hour}`, [`{"d":"${day}${hour}"}`]])),
    )
    const standIn = await startAmplitude({
      lines,
      slowMs: 200,
      faultOf: ({ from, to }) =>
        from.slice(0, 8) === to.slice(0, 8) ? null : { kind: 'status', status: 400, body: 'too large' },
    })
    t.after(() => standIn.stop())
    const options = ['--source', 'amplitude', '--host', standIn.url, '--window-days', '3', ...range]
    await assertSurvivesKills(t, { env: fetchSecrets, options, progress: () => standIn.asked.length, spanMs: 500 })
  })

  it('a killed S3 fetch ends with the same bytes as an undisturbed one', { skip: s3Missing }, async t => {
    const s3 = await startS3(t)
    await s3.client.send(new CreateBucketCommand({ Bucket: 'exports' }))
    for (let index = 0; index < 8; index++)
      await s3.client.send(
        new PutObjectCommand({
          Bucket: 'exports',
          Key: `a/${index}.bin`,
          Body: randomBytes(index === 0 ? 50_000_000 : 9_000_000),
        }),
      )
    const proxy = await startCuttingProxy(t, s3.endpoint)
    const options = ['--source', 's3', '--s3-url', 's3://exports/a/', '--s3-endpoint', proxy.url, '--s3-path-style']
    await assertSurvivesKills(t, { env: s3.credentials, options, progress: proxy.bytes, spanMs: 250 })
  })
})
