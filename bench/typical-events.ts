// Generates events like those of a busy site, to measure the worker: 28 properties and about 850 bytes each, some
// `$identify`, some with `$set`. A seed makes them the same in each run.

import type { CapturedEvent } from '#core/events/captured-event.ts'
import { seededRandom } from '../tests/support/seeded-random.ts'

export interface TypicalEventOptions {
  readonly seed: number
  readonly count: number
  /** How many distinct visitors the events are spread over. */
  readonly visitorCount: number
  /** The share of events that are `$identify`, 0 to 1. */
  readonly identifyShare: number
  readonly setShare: number
  readonly firstNumber?: number
}

export const typicalMix = { seed: 1, visitorCount: 400, identifyShare: 0.05, setShare: 0.3 }

export function typicalEvents(options: TypicalEventOptions): CapturedEvent[] {
  const random = seededRandom(options.seed)
  const first = options.firstNumber ?? 0
  return Array.from({ length: options.count }, (_, index) => typicalEvent(first + index, random, options))
}

const startMs = Date.parse('2026-11-01T00:00:00Z')

function typicalEvent(number: number, random: () => number, options: TypicalEventOptions): CapturedEvent {
  const visitor = Math.floor(random() * options.visitorCount)
  const anonymousId = `0199a000-5e5e-7000-8000-${visitor.toString(16).padStart(12, '0')}`
  const kind = random()
  const identifies = kind < options.identifyShare
  const sets = !identifies && kind < options.identifyShare + options.setShare
  const timestampMs = startMs + number * 10
  const page = Math.floor(random() * 50)
  const properties: Record<string, unknown> = {
    $os: 'Mac OS X',
    $os_version: '10.15.7',
    $browser: 'Chrome',
    $browser_version: 130,
    $device_type: 'Desktop',
    $current_url: `https://shop.example/products/${page}?ref=${visitor % 7}`,
    $host: 'shop.example',
    $pathname: `/products/${page}`,
    $viewport_height: 969,
    $viewport_width: 1792,
    $screen_height: 1120,
    $screen_width: 1792,
    $lib: 'web',
    $lib_version: '1.298.0',
    $insert_id: `i${number.toString(36).padStart(15, '0')}`,
    $time: timestampMs / 1000 + 0.001,
    $device_id: anonymousId,
    $session_id: `0199a001-5e5e-7000-8000-${(visitor % 90).toString(16).padStart(12, '0')}`,
    $window_id: `0199a002-5e5e-7000-8000-${(visitor % 90).toString(16).padStart(12, '0')}`,
    $referrer: '$direct',
    $referring_domain: '$direct',
    $is_identified: false,
    distinct_id: anonymousId,
    token: 'phc_bench0000000000000000000000000000000001',
    section: 'catalogue',
    position: page,
    price: 19.99,
  }
  if (identifies) properties.$anon_distinct_id = anonymousId
  if (identifies || sets)
    properties.$set = { plan: visitor % 3 === 0 ? 'pro' : 'free', email: `user${visitor}@shop.example` }
  return {
    projectId: 1,
    token: 'phc_bench0000000000000000000000000000000001',
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    protocol: 'v0',
    personProcessingForcedOff: false,
    notes: 0,
    receivedAtMs: timestampMs,
    capturedAtMs: timestampMs,
    timestampMs,
    sentAtMs: timestampMs,
    uuid: `0199a003-0000-4000-8000-${number.toString(16).padStart(12, '0')}`,
    name: identifies ? '$identify' : sets ? 'product added' : '$pageview',
    distinctId: identifies ? `user-${visitor}` : anonymousId,
    ip: '203.0.113.7',
    visitor: null,
    propertiesJson: JSON.stringify(properties),
    setJson: null,
    setOnceJson: null,
  }
}
