// Cookieless visitors whose page is served by one front and whose events are accepted by another. Each connection
// reaches one front, so that a test knows which front it asks.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { dayMs } from '#core/time.ts'
import { childProcessesOf } from './child-processes.ts'
import { eventually } from './eventually.ts'
import { type Pennon, testProjectKey } from './pennon.ts'

/** Texts that must not be found anywhere afterwards. */
export const visitorTraces = ['203.0.113.77', 'Adas-Browser']

const sentinel = '$posthog_cookieless'
const userAgent = 'Mozilla/5.0 (Fridge; Smart) AppleWebKit/537.36 Adas-Browser/8.8'
const shown = { 'x-forwarded-for': '203.0.113.77', 'user-agent': userAgent, origin: 'https://shop.example.com' }

/** Process ids of the fronts of an instance that has several. */
export function frontsOf(pennon: Pennon): number[] {
  const { work, events } = pennon.childPids()
  return childProcessesOf(pennon.pid).filter(pid => pid !== work && pid !== events)
}

/**
 * Checks that all fronts know a visitor by one id, in events and flags, in both modes, even when they create the salt
 * of a day at the same moment, and when one front accepts the `$identify` and another the next events. No such event
 * may have been sent before.
 */
export async function assertOneVisitorOnAllFronts(pennon: Pennon): Promise<void> {
  const fronts = await connectToEachFront(pennon)
  assert.ok(fronts.length > 1)
  const variants = Array.from({ length: 50 }, (_, n) => ({ key: `v${n}`, rollout_percentage: 2 }))
  const filters = { groups: [{ rollout_percentage: 100 }], multivariate: { variants } }
  await pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'shares', filters })
  for (const front of fronts) await eventually(async () => (await variantOf(front, 'ada')) !== undefined)

  for (const mode of [1, 2]) {
    await pennon.api('PATCH', '/api/projects/@current/', { cookieless_server_hash_mode: mode })
    for (const front of fronts)
      await eventually(async () => (await modeOf(front)) === mode, { what: `mode ${mode} on a front` })

    const now = Date.now()
    const days = [0, 1, 2].map(ago => new Date(now - ago * dayMs).toISOString())
    const name = `seen ${mode}`
    const asked = await Promise.all(
      fronts.flatMap(front => [variantOf(front), ...days.map(timestamp => send(front, { event: name, timestamp }))]),
    )
    const seen = await stored(pennon, name, fronts.length * days.length)
    const ids = days.map(day => only(seen.filter(({ timestamp }) => timestamp === day).map(event => event.distinct_id)))
    assert.equal(new Set(ids).size, days.length, 'another id each day')
    for (const day of days)
      only(seen.filter(({ timestamp }) => timestamp === day).map(({ properties }) => properties.$session_id))
    assert.equal(only(asked.filter(answer => answer !== null)), await variantOf(fronts[0]!, ids[0]!))

    const [one, other] = [fronts[0]!, fronts.at(-1)!]
    await send(other, { event: '$identify', distinct_id: `user ${mode}`, properties: { $anon_distinct_id: sentinel } })
    await pennon.caughtUp()
    for (const front of [one, other]) await send(front, { event: `${name} later` })
    const later = only((await stored(pennon, `${name} later`, 2)).map(event => event.distinct_id))
    for (const front of fronts) assert.equal(await variantOf(front), await variantOf(front, later))
    if (mode === 1) assert.equal(later, ids[0])
    else assert.deepEqual(await idsOfPerson(pennon, 'user 2'), [ids[0], 'user 2'])
    assert.equal(later === ids[0], mode === 1)
  }
  for (const front of fronts) front.close()
}

interface StoredEvent {
  readonly distinct_id: string
  readonly timestamp: string
  readonly properties: Readonly<Record<string, string>>
}

async function stored(pennon: Pennon, name: string, count: number): Promise<readonly StoredEvent[]> {
  await pennon.caughtUp()
  const path = `/api/projects/@current/events/?event=${encodeURIComponent(name)}&after=2020-01-01`
  const { results } = await pennon.api<{ results: StoredEvent[] }>('GET', path)
  assert.equal(results.length, count)
  return results.map(event => ({ ...event, timestamp: new Date(event.timestamp).toISOString() }))
}

async function idsOfPerson(pennon: Pennon, distinctId: string): Promise<string[]> {
  const path = `/api/projects/@current/persons/?distinct_id=${encodeURIComponent(distinctId)}`
  const { results } = await pennon.api<{ results: { distinct_ids: string[] }[] }>('GET', path)
  return results[0]!.distinct_ids.toSorted()
}

function only<T>(values: readonly T[]): T {
  assert.equal(new Set(values).size, 1, JSON.stringify(values))
  return values[0]!
}

async function send(front: FrontConnection, event: JsonObject): Promise<null> {
  await post(front, '/i/v0/e/', pageEvent(event))
  return null
}

function pageEvent({ properties, ...event }: JsonObject): JsonObject {
  const page = { $cookieless_mode: true, $host: 'shop.example.com', $timezone: zone, $raw_user_agent: userAgent }
  return {
    ...{ api_key: testProjectKey, distinct_id: sentinel, ...event },
    properties: { ...page, ...(properties as JsonObject | undefined) },
  }
}

/** @returns the variant for the visitor of this page, or for an id. */
async function variantOf(front: FrontConnection, distinctId = sentinel): Promise<JsonValue | undefined> {
  const body = { token: testProjectKey, distinct_id: distinctId, timezone: zone }
  const { featureFlags } = await post<{ featureFlags: JsonObject }>(front, '/flags?v=1', body)
  return featureFlags.shares
}

/** The project's mode, found by sending an `$identify` of another visitor. */
async function modeOf(front: FrontConnection): Promise<number> {
  const event = pageEvent({ event: '$identify', distinct_id: 'probe', properties: { $raw_user_agent: 'Probe' } })
  const body = { api_key: testProjectKey, batch: [event] }
  const { events } = await post<{ events: readonly { reason?: string }[] }>(front, '/batch/?verbose=1', body)
  return events[0]!.reason === 'cookieless_stateless_no_identify' ? 1 : 2
}

/** A time zone where it is about noon, so that no day ends during a test. */
const zone = zoneAtNoon(new Date().getUTCHours())

function zoneAtNoon(utcHour: number): string {
  const ahead = 12 - utcHour
  return ahead >= 0 ? `Etc/GMT-${ahead}` : `Etc/GMT+${-ahead}`
}

interface FrontConnection {
  readonly agent: Agent
  readonly url: string
  /** A header of the test that identifies the connection. */
  readonly port: number
  close(): void
}

/** One kept connection per front. */
async function connectToEachFront(pennon: Pennon): Promise<readonly FrontConnection[]> {
  const connections = new Map<number, FrontConnection>()
  const pids = frontsOf(pennon)
  for (let tries = 0; connections.size < pids.length; tries++) {
    assert.ok(tries < 100, 'a front gets no connection')
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const connection = { agent, url: pennon.url, close: () => agent.destroy() }
    const { port } = await ask(connection, 'GET', '/_liveness')
    const inode = inodeOfServerSide(pennon.port, port)
    const pid = pids.find(pid => hasSocket(pid, inode))
    if (pid === undefined || connections.has(pid)) connection.close()
    else connections.set(pid, { ...connection, port })
  }
  return [...connections.values()]
}

function inodeOfServerSide(serverPort: number, clientPort: number): string | undefined {
  const ends = (address: string, port: number) =>
    address.endsWith(`:${port.toString(16).toUpperCase().padStart(4, '0')}`)
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap(path => readFileSync(path, 'utf8').split('\n'))
    .map(line => line.trim().split(/\s+/))
    .find(([, local = '', remote = '']) => ends(local, serverPort) && ends(remote, clientPort))?.[9]
}

function hasSocket(pid: number, inode: string | undefined): boolean {
  return readdirSync(`/proc/${pid}/fd`).some(name => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`) === `socket:[${inode}]`
    } catch {
      return false // closed in the meantime
    }
  })
}

/** A busy machine may exceed the stores' time limits: then the answer is 503, and nothing was done. */
async function post<T>(front: FrontConnection, path: string, body: JsonObject): Promise<T> {
  const { status, text, port } = await eventually(async () => {
    const answer = await ask(front, 'POST', path, JSON.stringify(body))
    return answer.status === 503 ? null : answer
  })
  assert.equal(status, 200, text)
  assert.equal(port, front.port, 'still the connection to this front')
  return JSON.parse(text)
}

function ask({ agent, url }: Omit<FrontConnection, 'port'>, method: string, path: string, body = '') {
  return new Promise<{ status: number; text: string; port: number }>((resolve, reject) => {
    const headers = { ...shown, 'content-type': 'application/json' }
    const asking = request(url + path, { agent, method, headers }, response => {
      const port = response.socket.localPort!
      let text = ''
      response.setEncoding('utf8')
      response.on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, text, port }))
    })
    asking.on('error', reject)
    asking.end(body)
  })
}
