// The requests that are mutated: those that real SDKs sent, and some of newer protocols.

import { readCaptureBody } from '#wire/capture/capture-body.ts'
import { testToken } from '../../support/capture-server.ts'
import { goldenRequests, type Recorded, requestsOfSdks, snapshotRequests } from '../recorded-requests.ts'
import { uuidOf, v1Batch, v1Event, v1Headers } from '../v1-requests.ts'
import { mutateBytes, mutateText, pack, pick, type Random } from './mutations.ts'

export interface FuzzRequest {
  readonly method: 'POST' | 'GET'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A request with an unpacked body. */
interface Seed {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

function seedOf({ path, headers, body }: Recorded): Seed {
  const url = new URL(path, 'http://x')
  const read = readCaptureBody(
    {
      body: Buffer.from(body as string),
      data: url.searchParams.get('data') ?? '',
      compression: url.searchParams.get('compression') ?? '',
      contentType: headers['content-type'] ?? headers['Content-Type'] ?? '',
      contentEncoding: headers['content-encoding'] ?? headers['Content-Encoding'] ?? '',
      legacyPath: true,
    },
    1e8,
  )
  if (!read.ok) throw new Error(`${path}: ${JSON.stringify(read.error)}`)
  // A new compression is chosen.
  for (const name of ['compression', 'data']) url.searchParams.delete(name)
  return { path: url.pathname + url.search, headers: {}, text: read.value.text }
}

const cookieless = {
  token: testToken,
  event: '$pageview',
  distinct_id: '$posthog_cookieless',
  properties: {
    ...{ $cookieless_mode: true, $raw_user_agent: 'Fuzz/1.0', $host: 'shop.example.com', $timezone: 'Europe/Berlin' },
    ...{ $ip: '203.0.113.7', n: 1.0, $set: { $raw_user_agent: 'Fuzz/1.0', plan: 'pro' }, $session_id: 's' },
  },
  $set_once: { $initial_raw_user_agent: 'Fuzz/1.0' },
}
const snapshot = {
  event: '$snapshot',
  properties: {
    token: testToken,
    distinct_id: 'ada',
    $session_id: '0197c5a0-0000-7000-8000-000000000001',
    $window_id: 'w',
    $snapshot_data: [{ type: 3, data: { source: 1, positions: [{ x: 1.0, y: 2 }] }, timestamp: 1751367600000 }],
  },
  timestamp: '2025-07-01T10:59:58.123Z',
}
const flags = {
  token: testToken,
  distinct_id: 'ada',
  groups: { company: 'acme' },
  person_properties: { plan: 'pro', n: 1.0, big: 12345678901234567890n.toString() },
  group_properties: { company: { tier: 'gold' } },
}

export interface Seeds {
  readonly seeds: readonly Seed[]
  readonly projectKeys: ReadonlySet<string>
}

export function recordedSeeds(): Seeds {
  const recorded = [...goldenRequests(), ...snapshotRequests(), ...requestsOfSdks(testToken)]
  const v1 = { path: '/i/v1/analytics/events', headers: v1Headers }
  const events = [0, 1, 2].map(index =>
    v1Event(index, { options: { process_person_profile: false }, session_id: uuidOf(9) }),
  )
  return {
    projectKeys: new Set([testToken, ...recorded.map(({ projectKey }) => projectKey)]),
    seeds: [
      ...recorded.filter(({ path }) => !path.startsWith('/i/v1')).map(seedOf),
      ...Array.from({ length: 12 }, () => ({ ...v1, text: v1Batch(events) })),
      { path: '/i/v1/ai/events', headers: v1Headers, text: v1Batch([v1Event(1, { event: '$ai_span' })]) },
      ...['/e/', '/e/', '/batch/?verbose=1', '/i/v0/ai/batch/'].map(path => ({
        path,
        headers: {},
        text: JSON.stringify([cookieless, { ...cookieless, event: '$identify' }]),
      })),
      ...['/s/', '/s/', '/s/', '/s/'].map(path => ({ path, headers: {}, text: JSON.stringify([snapshot, snapshot]) })),
      ...['/flags/?v=2', '/decide/?v=3', '/flags', '/decide/?v=1'].map(path => ({
        path,
        headers: {},
        text: JSON.stringify(flags),
      })),
    ],
  }
}

const otherPaths = [
  '/e/',
  '/batch/',
  '/capture',
  '/track/',
  '/engage/',
  '/i/v0/e/',
  '/i/v0/ai/batch',
  '/s/',
  '/decide/?v=3',
]
const hints = ['gzip', 'gzip-js', 'GZIP', 'lz64', 'lz-string', 'base64', 'b64', 'zstd', '__proto__', '']
const contentTypes = [
  'application/json',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  ';;',
  '*',
]
const parameters = [
  '_=1751367610000',
  '_=x',
  'sent_at=1751367610000',
  'beacon=1',
  'verbose=1',
  'v=3',
  'ip=0',
  '__proto__=1',
]

export function fuzzRequest({ seeds }: Seeds, random: Random): FuzzRequest {
  const seed = pick(random, seeds)
  const text = mutateText(seed.text, random)
  const { body, headers = {}, query = '' } = pack(text, random)
  const path = random() < 0.8 ? seed.path : pick(random, otherPaths)
  const more = [query, ...parameters.filter(() => random() < 0.06)]
  if (random() < 0.1) more.push(`compression=${pick(random, hints)}`)
  const search = more.filter(parameter => parameter !== '').join('&')
  const type: Record<string, string> = random() < 0.1 ? { 'content-type': pick(random, contentTypes) } : {}
  const encoding: Record<string, string> =
    random() < 0.05 ? { 'content-encoding': pick(random, [...hints, 'deflate', 'br']) } : {}
  return {
    method: random() < 0.05 ? 'GET' : 'POST',
    path: search === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${search}`,
    headers: { 'content-type': 'application/json', ...seed.headers, ...headers, ...type, ...encoding },
    body: mutateBytes(body, random),
  }
}
