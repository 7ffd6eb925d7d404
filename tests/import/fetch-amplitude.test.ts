// Fetching from Amplitude's Export API, against a stand-in that behaves as badly as the real one. Source:
// docs/wire/import.md §1.1, §2.5, §5 complaints 1, 11, §7 A3.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { Uint8ArrayReader, Uint8ArrayWriter, ZipReader } from '@zip.js/zip.js'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { type StandInOptions, startAmplitude } from '../support/export-stand-in.ts'
import { fetchInto, rawFiles } from '../support/fetching.ts'
import { tempDir } from '../support/temp-dir.ts'

const may = { source: 'amplitude', from: '2024-05-01', to: '2024-05-03' }
/** The second day has data only in its last hour. */
const mayEvents = new Map(
  ['20240501T00', '20240501T13', '20240501T23', '20240502T23', '20240503T00', '20240503T22'].map(hour => [
    hour,
    [0, 1, 2].map(index => `{"event_type":"Ordered","amplitude_id":9007199254740993,"uuid":"${hour}-${index}"}`),
  ]),
)

async function aWorld(t: TestContext, options: Partial<StandInOptions> = {}) {
  const standIn = await startAmplitude({ lines: mayEvents, ...options })
  t.after(() => standIn.stop())
  const folder = tempDir(t)
  const notices: string[] = []
  const fetch = (config: Record<string, string> = may) =>
    fetchInto(folder, { ...config, host: standIn.url }, { onNotice: line => notices.push(line) })
  return { standIn, folder, notices, fetch }
}

async function linesIn(folder: string): Promise<string[]> {
  const lines: string[] = []
  for (const name of rawFiles(folder)) {
    const zip = new ZipReader(new Uint8ArrayReader(readFileSync(join(folder, 'raw', name))), { useWebWorkers: false })
    for (const entry of await zip.getEntries())
      if (!entry.directory && entry.filename.endsWith('.gz'))
        lines.push(
          ...gunzipSync(await entry.getData(new Uint8ArrayWriter()))
            .toString()
            .split('\n')
            .filter(Boolean),
        )
    await zip.close()
  }
  return lines.sort()
}

const truth = [...mayEvents.values()].flat().sort()

describe('fetching from Amplitude', () => {
  it('each hour from T00 to T23 is fetched once, whatever the window size', async t => {
    for (const days of ['1', '2', '365']) {
      const { standIn, folder, fetch } = await aWorld(t)
      await fetch({ ...may, window_days: days })
      assert.deepEqual(await linesIn(folder), truth, `windows of ${days} days`)
      // Several windows are requested at once.
      assert.equal(standIn.asked.map(({ from }) => from).toSorted()[0], '20240501T00')
      assert.equal(
        standIn.asked
          .map(({ to }) => to)
          .toSorted()
          .at(-1),
        '20240503T23',
      )
      const key = Buffer.from('amplitude-key-1:amplitude-secret-1').toString('base64')
      assert.equal(standIn.asked[0]!.authorization, `Basic ${key}`)
    }
  })

  it('status 404 means no data, and no file is written', async t => {
    const { folder, fetch } = await aWorld(t, {
      lines: new Map([...mayEvents].filter(([hour]) => !hour.startsWith('20240502'))),
    })
    const { partsDone, partsEmpty } = await fetch()
    assert.deepEqual([partsDone, partsEmpty], [2, 1])
    assert.deepEqual(rawFiles(folder), [
      'amplitude-20240501T00-to-20240501T23.zip',
      'amplitude-20240503T00-to-20240503T23.zip',
    ])
  })

  it('a truncated, empty or damaged zip is never accepted', async t => {
    for (const kind of ['cut_connection', 'cut_file', 'closed', 'empty_body', 'damaged'] as const) {
      const { standIn, folder, fetch } = await aWorld(t, { faultOf: ({ times }) => (times === 1 ? { kind } : null) })
      await fetch()
      assert.deepEqual(await linesIn(folder), truth, kind)
      assert.equal(standIn.asked.length, 6, kind)
    }
  })

  it('a window over 4 GB or over the time limit is halved, down to single hours', async t => {
    for (const status of [400, 413, 504]) {
      const { standIn, folder, fetch } = await aWorld(t, {
        faultOf: ({ from, to }) => (from === to ? null : { kind: 'status', status, body: 'over 4GB' }),
      })
      await fetch({ ...may, to: '2024-05-01' })
      assert.deepEqual(
        await linesIn(folder),
        truth.filter(line => line.includes('20240501T')),
      )
      assert.equal(standIn.asked.length, 23 + 24)
      const hours = readFetchedParts(folder)!.parts.map(({ object }) => object)
      assert.deepEqual(hours, [...hours].sort())
    }
  })

  it('a single hour that is refused stops the fetch, with a message that names the alternatives', async t => {
    const { fetch } = await aWorld(t, { faultOf: () => ({ kind: 'status', status: 400, body: 'over 4GB' }) })
    await assert.rejects(fetch(), /400: over 4GB.*smallest window.*export to Amazon S3/)
  })

  it('the fetch continues after temporary refusals, with and without Retry-After', async t => {
    const { folder, fetch } = await aWorld(t, {
      faultOf: ({ times }) =>
        times > 3
          ? null
          : { kind: 'status', status: [429, 503, 429][times - 1]!, retryAfter: ['30', '0', 'soon'][times - 1]! },
    })
    await fetch()
    assert.deepEqual(await linesIn(folder), truth)
  })

  it('the fetch warns repeatedly while no data arrives, and continues', async t => {
    const { folder, notices, fetch } = await aWorld(t, {
      faultOf: ({ times }) => (times > 100 ? null : { kind: 'closed' }),
    })
    await fetch()
    assert.deepEqual(await linesIn(folder), truth)
    assert.match(notices[0]!, /^Nothing has come for 1\d minutes: the source closed the connection\. Still trying/)
    assert.ok(notices.length > 1 && notices.length < 30, `${notices.length} notices`)
  })

  it('both keys are required, and the missing one is named', async t => {
    const config = { ...may, host: 'http://127.0.0.1:9' }
    const env = { AMPLITUDE_API_KEY: 'key' }
    await assert.rejects(fetchInto(tempDir(t), config, { env }), /Set AMPLITUDE_SECRET_KEY/)
  })

  it('hours that are not complete yet and unknown regions are refused', async t => {
    const { fetch } = await aWorld(t)
    await assert.rejects(fetch({ ...may, to: '2026-01-14' }), /Fetch up to 2026-01-13/)
    await assert.rejects(fetchInto(tempDir(t), { ...may, region: 'in' }), /amplitude has no region in/)
  })
})
