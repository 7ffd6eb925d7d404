import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { composeChangeHub } from '#compose/front/definitions.ts'
import { composeFlags } from '#compose/front/flags.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { computeChangeTag } from '#wire/flags/change-events.ts'
import { compileTestProject } from '../support/decide-server.ts'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { serveParts, testContext, testParts } from '../support/front-parts.ts'
import { testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

// The change stream over real sockets. Source: docs/wire/ofrep.md 5.

const path = '/ofrep/v1/events'

interface Stream {
  readonly socket: Socket
  /** Everything after the headers, without the chunked framing. */
  body(): string
  head(): string
  /** The id and the data of each event so far, in order. */
  events(): { id: string; data: unknown }[]
  isClosed(): boolean
}

async function openStream(url: string, target: string, headers: readonly string[] = []): Promise<Stream> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let received = ''
  let isClosed = false
  socket.setEncoding('latin1')
  socket.on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => undefined) // a dropped connection is seen by its close
  socket.on('close', () => {
    isClosed = true
  })
  socket.write([`GET ${target} HTTP/1.1`, 'host: pennon', ...headers, '', ''].join('\r\n'))
  await eventually(() => received.includes('\r\n\r\n') || isClosed, { what: 'the head of a stream' })
  const body = () =>
    received
      .slice(received.indexOf('\r\n\r\n') + 4)
      .replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, '')
      .replace(/\r\n$/, '')
  return {
    socket,
    body,
    head: () => received.slice(0, received.indexOf('\r\n\r\n')),
    events: () =>
      [...body().matchAll(/id: (.*)\ndata: (.*)\n\n/g)].map(([, id, data]) => ({ id: id!, data: JSON.parse(data!) })),
    isClosed: () => isClosed,
  }
}

const compiled = compileTestProject({ flags: [] })
/** The text by which it names a revision. */
const tag = (revision: number) => computeChangeTag(compiled.project.uuid, revision)

function refetch(revision: number) {
  return { id: tag(revision), data: { type: 'refetchEvaluation', etag: tag(revision) } }
}

/** The routes over a hub whose time and timer the test moves; the project is at revision 1, changed long ago. */
async function startStreams(t: Pick<TestContext, 'after'>, limits: { readersMax?: number } = {}) {
  let nowMs = 0
  let beat: (() => void) | null = null
  const metrics = createMetrics()
  const context = testContext({
    metrics,
    monotonicNowMs: () => nowMs,
    startTimer: callback => {
      beat = callback
      return {
        cancel: () => {
          beat = null
        },
      }
    },
  })
  const hub = composeChangeHub(context, { readersMax: 2_000, readersPerProjectMax: 2_000, ...limits })
  nowMs = 3_600_000
  const opened = new AsyncDisposableStack()
  const parts = testParts(context, opened, {
    definitions: { changes: hub, findProject: key => (key === 'phc_test' ? compiled : null) },
  })
  const connections: Socket[] = []
  const { url, server } = await serveParts(t, parts, composeFlags(parts).routes, opened)
  server.server.on('connection', connection => connections.push(connection))
  return {
    url,
    stop: () => opened.disposeAsync(),
    change: (revision: number) =>
      hub.publish({ projects: [{ id: compiled.project.id, apiToken: 'phc_test', revision }], deletedProjectIds: [] }),
    beat: () => beat?.(),
    open: (query = '?token=phc_test', headers: readonly string[] = []) => openStream(url, path + query, headers),
    /** A stream whose client reads nothing, with more data on its connection than the kernel buffers. */
    openStuck: async () => {
      const stream = await openStream(url, `${path}?token=phc_test`)
      stream.socket.pause()
      const connection = connections.at(-1)!
      connection.write('x'.repeat(16 * 1024 * 1024))
      await eventually(() => connection.writableLength > 0)
      return stream
    },
    count: async () => (await metrics.changeStreams.get()).values[0]!.value,
    dropped: async () => (await metrics.changeStreamsDropped.get()).values[0]!.value,
  }
}

describe('a change stream', () => {
  it('sends the retry interval and the current revision, then each change, with heartbeats in between', async t => {
    const { open, change, beat } = await startStreams(t)
    const stream = await open()
    assert.match(stream.head(), /^HTTP\/1\.1 200 /)
    assert.match(stream.head(), /content-type: text\/event-stream\r\n/)
    assert.match(stream.head(), /cache-control: no-store, no-transform\r\n/)
    assert.match(stream.head(), /x-accel-buffering: no\r\n/)
    await eventually(() => stream.body() === `retry: 3000\nid: ${tag(1)}\n\n`)
    change(2)
    await eventually(() => stream.events().length === 1)
    beat()
    await eventually(() => stream.body().endsWith('\n\n:\n\n'))
    change(3)
    await eventually(() => stream.events().length === 2)
    assert.deepEqual(stream.events(), [refetch(2), refetch(3)])
  })

  it('accepts the key in the URL or in a header, and rejects in OFREP’s error format', async t => {
    const { open, url } = await startStreams(t)
    for (const [query, header] of [
      ['?token=phc_test', []],
      ['?api_key=phc_test', []],
      ['', ['authorization: Bearer phc_test']],
      ['', ['x-api-key: phc_test']],
    ] as const)
      assert.match((await open(query, header)).head(), /^HTTP\/1\.1 200 /)
    for (const query of ['', '?token=phc_else', '?token=phc_test&token=phc_test']) {
      const refused = await fetch(url + path + query)
      assert.equal(refused.status, 401)
      assert.deepEqual(Object.keys((await refused.json()) as object), ['errorCode', 'errorDetails'])
    }
    assert.equal((await fetch(`${url + path}?token=phc_test`, { method: 'POST' })).status, 405)
  })

  it('notifies a reconnecting client at once of a missed change, found by header or URL', async t => {
    const { open } = await startStreams(t)
    const eventsOf = async (query: string, headers: string[] = []) => {
      const stream = await open(`?token=phc_test${query}`, headers)
      await eventually(() => stream.body().startsWith('retry'))
      return stream.events()
    }
    assert.deepEqual(await eventsOf('', [`last-event-id: ${tag(1)}`]), [])
    assert.deepEqual(await eventsOf('', [`last-event-id: ${tag(0)}`]), [refetch(1)])
    assert.deepEqual(await eventsOf(`&lastEventId=${tag(0)}`), [refetch(1)])
    assert.deepEqual(await eventsOf(''), [])
  })

  it('disconnects a client that reads nothing, while all other clients get every event', async t => {
    const { open, openStuck, change, beat, count, dropped } = await startStreams(t)
    const [stuck, reading] = [await openStuck(), await open()]
    change(2)
    await eventually(() => reading.events().length === 1)
    beat()
    assert.equal(await dropped(), 0)
    await eventually(() => reading.body().endsWith(':\n\n'))
    beat()
    assert.equal(await dropped(), 1)
    assert.equal(await count(), 1)
    change(3)
    await eventually(() => reading.events().length === 2)
    stuck.socket.resume()
    await eventually(() => stuck.isClosed())
    assert.deepEqual(reading.events(), [refetch(2), refetch(3)])
  })

  it('forgets a client that disconnected', async t => {
    const { open, count } = await startStreams(t)
    const streams = [await open(), await open()]
    assert.equal(await count(), 2)
    streams[0]!.socket.destroy()
    await eventually(async () => (await count()) === 1)
  })

  it('is rejected with 503 when the instance already serves the maximum number of streams', async t => {
    const { open, url } = await startStreams(t, { readersMax: 1 })
    await open()
    const refused = await fetch(`${url + path}?token=phc_test`)
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '60'])
  })

  it('ends at once when the server stops, even with a stuck client', async t => {
    const { open, openStuck, stop, change } = await startStreams(t)
    const [stuck, reading] = [await openStuck(), await open()]
    change(2)
    await eventually(() => reading.events().length === 1)
    // No timer runs here, so the timer for idle connections cannot be what ends them.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    await stop()
    t.mock.timers.reset()
    await eventually(() => reading.isClosed())
    stuck.socket.resume()
    await eventually(() => stuck.isClosed())
  })

  it('may be opened by pages of other origins', async t => {
    const { open } = await startStreams(t)
    const stream = await open('?token=phc_test', ['origin: https://shop.example'])
    assert.match(stream.head(), /access-control-allow-origin: https:\/\/shop\.example\r\n/)
  })
})

describe('the change stream of a front', () => {
  const front = startedForTests(startFront)

  it('reports a change once the change is served, and nothing about other projects', async () => {
    const other = await front.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: 'other' })
    const mine = await openStream(front.url, `${path}/?token=${testProjectKey}`)
    const ofOther = await openStream(front.url, `${path}?token=${other.api_token}`)
    // A front that just started cannot know what changed before, so it first tells every client to check.
    await eventually(() => mine.events().length === 1 && ofOther.events().length === 1)
    await front.api('POST', '/api/projects/@current/feature_flags/', { key: 'told' })
    await eventually(() => mine.events().length === 2)
    const [first, second] = mine.events()
    assert.notEqual(second!.id, first!.id)
    assert.equal(ofOther.events().length, 1)

    const answer = await fetch(`${front.url}/ofrep/v1/evaluate/flags?flagConfigEtag=${second!.id}`, {
      method: 'POST',
      headers: { 'x-api-key': testProjectKey, 'content-type': 'application/json' },
      body: '{"context":{"targetingKey":"u"}}',
    })
    const { eventStreams } = (await answer.json()) as { eventStreams: { endpoint: { requestUri: string } }[] }
    assert.equal(eventStreams[0]!.endpoint.requestUri, `${path}?token=${testProjectKey}`)

    await front.api('PATCH', `/api/projects/${other.id}/reset_token/`)
    await eventually(() => ofOther.isClosed(), { what: 'the end of the streams of a key that was replaced' })
    const refused = await fetch(`${front.url}${path}?token=${other.api_token}`)
    assert.equal(refused.status, 401)
    assert.equal(mine.isClosed(), false)
    mine.socket.destroy()
  })
})
