// Sends mutated requests one after the other and checks every answer and every record against what must always hold.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import type { CapturedEvent, DecodedRecord } from '#core/events/captured-event.ts'
import { type JsonObject, parseJsonWithDoubles } from '#core/json.ts'
import { nestingDepthMax } from '#wire/bytes/json-walk.ts'
import { exchange } from '../../conformance/exchange.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type FuzzServer, startFuzzServer } from './fuzz-server.ts'
import { type FuzzRequest, fuzzRequest, recordedSeeds } from './requests.ts'

export interface FuzzOptions {
  readonly requestCount: number
  readonly seed: number
  /** CPU time of the event loop, in ms, that no request may take, including the client's share. */
  readonly cpuMsMax: number
  readonly log?: (line: string) => void
}

export interface FuzzFigures {
  readonly requestCount: number
  readonly byStatus: Readonly<Record<string, number>>
  readonly byCode: Readonly<Record<string, number>>
  readonly eventCount: number
  readonly recordingCount: number
  /** The slowest requests, slowest first. */
  readonly slowest: readonly { readonly cpuMs: number; readonly index: number; readonly what: string }[]
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly cpuMs: number
}

const slowestCount = 10
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** @throws AssertionError naming seed and index of the request; `SEED` repeats a run, byte for byte. */
export async function runFuzz({
  requestCount,
  seed,
  cpuMsMax,
  log = () => undefined,
}: FuzzOptions): Promise<FuzzFigures> {
  const seeds = recordedSeeds()
  const server = await startFuzzServer(seeds.projectKeys)
  const random = seededRandom(seed)
  const byStatus: Record<string, number> = {}
  const byCode: Record<string, number> = {}
  const slowest: { cpuMs: number; index: number; what: string }[] = []
  let eventCount = 0
  let recordingCount = 0
  try {
    for (let index = 0; index < requestCount; index++) {
      const request = fuzzRequest(seeds, random)
      const where = `SEED=${seed}, request ${index}: ${describeRequest(request)}`
      let answer = await send(server, request)
      const records = server.takeRecords()
      try {
        const code = checkAnswer(answer)
        byStatus[answer.status] = (byStatus[answer.status] ?? 0) + 1
        if (code !== null) byCode[code] = (byCode[code] ?? 0) + 1
        checkRecords(records, answer, request)
        checkPrototypes()
        eventCount += records.filter(record => record.kind === 'event').length
        recordingCount += records.filter(record => record.kind === 'recording').length
        // Garbage collection or compilation is not the request's fault.
        for (let again = 0; again < 3 && answer.cpuMs > cpuMsMax; again++) {
          answer = await send(server, request)
          const repeated = server.takeRecords().filter(record => record.kind !== 'reject').length
          assert.equal(repeated, records.filter(record => record.kind !== 'reject').length, 'the same again')
          eventCount += repeated
        }
        assert.ok(answer.cpuMs <= cpuMsMax, `took ${answer.cpuMs} ms`)
      } catch (cause) {
        throw new Error(`${where}\n${answer.status} ${answer.body.slice(0, 300)}`, { cause })
      }
      noteSlow(slowest, { cpuMs: answer.cpuMs, index, what: describeRequest(request) })
      if ((index + 1) % 10_000 === 0) log(`${index + 1} requests, ${eventCount} events`)
    }
    assert.equal(await server.acceptedCount(), eventCount + recordingCount, 'acknowledged, and in the log')
  } finally {
    await server.close()
  }
  return { requestCount, byStatus, byCode, eventCount, recordingCount, slowest }
}

function noteSlow<T extends { cpuMs: number }>(slowest: T[], entry: T): void {
  if (slowest.length === slowestCount && entry.cpuMs <= slowest.at(-1)!.cpuMs) return
  slowest.push(entry)
  slowest.sort((a, b) => b.cpuMs - a.cpuMs)
  slowest.length = Math.min(slowest.length, slowestCount)
}

function describeRequest({ method, path, headers, body }: FuzzRequest): string {
  const encoding = headers['content-encoding'] ?? ''
  const start = JSON.stringify(body.toString('latin1', 0, 60))
  return `${method} ${path.slice(0, 80)} ${headers['content-type']} ${encoding} ${body.length} bytes ${start}`
}

async function send({ url }: FuzzServer, request: FuzzRequest): Promise<Answer> {
  const before = process.threadCpuUsage()
  const { status, text } = await exchange(url, request, agent)
  const { user, system } = process.threadCpuUsage(before)
  return { status, body: text, cpuMs: (user + system) / 1000 }
}

/** Every text in backticks, which includes all codes. A code that is missing there is reported. */
const documented = new Set(
  [...readFileSync('docs/wire/errors.md', 'utf8').matchAll(/`([a-z0-9_]+)`/g)].map(([, code]) => code!),
)

/** The code of an error, or null. */
function checkAnswer({ status, body }: Answer): string | null {
  assert.ok(status < 500, 'a fault of ours')
  if (status === 204) {
    assert.equal(body, '')
    return null
  }
  const answer = JSON.parse(body) as Record<string, unknown>
  assert.ok(typeof answer === 'object' && answer !== null && !Array.isArray(answer))
  if (status >= 400) {
    // Protocol v1 has its own words, except for unknown routes.
    const code = (answer.error ?? answer.code) as string
    assert.ok(documented.has(code), `undocumented code ${code}`)
    assert.ok(((answer.error_description ?? answer.detail) as string).length > 0)
    return code
  }
  assert.equal(status, 200)
  return null
}

function checkRecords(records: readonly DecodedRecord[], { status, body }: Answer, { path }: FuzzRequest): void {
  const stored = records.filter(record => record.kind === 'event' || record.kind === 'recording')
  for (const record of records) {
    if (record.kind === 'event') checkEvent(record.event)
    else assert.notEqual(record.kind, 'damaged')
  }
  if (status >= 400) assert.equal(stored.length, 0, 'refused and stored')
  if (status !== 200) return
  const answer = JSON.parse(body) as { results?: Record<string, { result: string }> }
  if (path.startsWith('/i/v1/')) {
    const kept = Object.values(answer.results!).filter(({ result }) => result === 'ok' || result === 'warning')
    assert.equal(stored.length, kept.length, 'a result for each event')
  } else if (path.startsWith('/s')) assert.equal(stored.length, 1, 'one record of a recording')
  else if (path.startsWith('/flags') || path.startsWith('/decide')) assert.equal(records.length, 0)
}

/** 1900 to 2299, the times that can be stored. */
const timesMs = [Date.UTC(1900, 0, 1), Date.UTC(2300, 0, 1)] as const

function checkEvent(event: CapturedEvent): void {
  for (const json of [event.propertiesJson, event.setJson, event.setOnceJson]) {
    if (json === null) continue
    const map = JSON.parse(json)
    assert.ok(typeof map === 'object' && map !== null && !Array.isArray(map), json.slice(0, 80))
    // When text is rewritten, lone surrogates become escapes.
    assert.doesNotMatch(JSON.stringify(map), /(?<!\\)(?:\\\\)*\\ud[89a-f]/, 'half a character')
    assert.ok(depthOf(json) <= nestingDepthMax + 1, 'nested too deep')
  }
  if (event.visitor !== null) {
    assert.equal(event.ip, '')
    const properties = parsed(event.propertiesJson)!
    const maps = [properties, properties.$set, properties.$set_once, ...[event.setJson, event.setOnceJson].map(parsed)]
    for (const map of maps) for (const name of telling) assert.ok(!Object.hasOwn(Object(map), name), name)
    assert.match(properties.$distinct_id as string, /^cookieless_/)
  }
  assert.match(event.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  for (const text of [event.name, event.distinctId]) {
    assert.ok(text !== '' && [...text].length <= 200 && text.isWellFormed(), JSON.stringify(text))
  }
  assert.ok(!event.distinctId.includes('\0'))
  assert.ok(event.timestampMs >= timesMs[0] && event.timestampMs < timesMs[1], String(event.timestampMs))
}

const telling = ['$ip', '$raw_user_agent', '$initial_raw_user_agent', '$cookieless_extra']
const parsed = (json: string | null) => (json === null ? null : (parseJsonWithDoubles(json) as JsonObject))

function depthOf(json: string): number {
  let depth = 0
  let deepest = 0
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === '{' || token === '[') deepest = Math.max(deepest, ++depth)
    else if (token === '}' || token === ']') depth--
  }
  return deepest
}

const prototypes = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Number.prototype]
const ownNames = prototypes.map(prototype => Reflect.ownKeys(prototype).length)

function checkPrototypes(): void {
  for (const [at, prototype] of prototypes.entries())
    assert.equal(Reflect.ownKeys(prototype).length, ownNames[at], 'a prototype was written to')
}
