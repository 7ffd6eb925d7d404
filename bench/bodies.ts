// The bodies that the benchmarks send: flags with property conditions, a stored person, events of the usual size.

import { gzipSync } from 'node:zlib'
import { projectKey } from './bench-server.ts'

/** A typical flag: two groups of property conditions with rollouts. */
export function flagBody(index: number): object {
  const country = { key: 'country', type: 'person', operator: 'exact', value: ['NO', 'SE', 'DK'] }
  const plan = { key: 'plan', type: 'person', operator: 'is_not', value: 'free' }
  const email = { key: 'email', type: 'person', operator: 'icontains', value: `@example${index % 7}.com` }
  const variants = {
    variants: [
      { key: 'control', rollout_percentage: 50 },
      { key: 'test', rollout_percentage: 50 },
    ],
  }
  return {
    key: `flag-${index}`,
    filters: {
      groups: [
        { properties: [email], rollout_percentage: 100 },
        { properties: [country, plan], rollout_percentage: index % 2 === 0 ? 60 : 100 },
      ],
      ...(index % 4 === 0 && { multivariate: variants }),
      ...(index % 5 === 0 && { payloads: { true: '{"limit": 10}', test: '"on"' } }),
    },
  }
}

/** A flag with the conditions of `flagBody` as rules of version 2, with ids and seeds: to be stored as it is. */
export function rulesFlagBody(index: number): object {
  const country = { key: 'country', type: 'person', operator: 'exact', value: ['NO', 'SE', 'DK'] }
  const plan = { key: 'plan', type: 'person', operator: 'is_not', value: 'free' }
  const email = { key: 'email', type: 'person', operator: 'icontains', value: `@example${index % 7}.com` }
  const hashed = { on_rollout_miss: 'continue', assignment_algorithm: 'sha1_60_v1', seed: `seed-${index}` }
  const rollout = { ...hashed, rollout_percentage: index % 2 === 0 ? 60 : 100 }
  const variants = ['control', 'test'].map(key => ({ key, weight: 50, value: key }))
  const split = { rule_type: 'experiment', experiment_id: null, paused: false, ...rollout, variants }
  const release = { rule_type: 'percentage_rollout', ...rollout, value: 'on' }
  return {
    key: `flag-${index}`,
    active: true,
    filters: {
      version: 2,
      return_type: 'string',
      default_value: null,
      rules: [
        { id: uuidOf(1), rule_type: 'targeted_release', targeting: { properties: [email] }, value: 'early' },
        { id: uuidOf(2), targeting: { properties: [country, plan] }, ...(index % 4 === 0 ? split : release) },
      ],
    },
  }
}

export const storedPersonProperties = {
  country: 'NO',
  plan: 'pro',
  email: 'ada@example.com',
  age: 36,
  city: 'Oslo',
  created: '2024-03-01T10:00:00Z',
  $browser: 'Firefox',
  $os: 'Linux',
}

export const decideBody = Buffer.from(
  JSON.stringify({ api_key: projectKey, distinct_id: 'ada', groups: {}, person_properties: { $app_version: '4.2.0' } }),
)

/** An event of about 850 bytes with 28 properties, as a browser sends it. */
export function eventBody(index: number, overrides: Record<string, unknown> = {}): Record<string, unknown> {
  const properties: Record<string, unknown> = {
    $current_url: `https://shop.example.com/products/${index % 500}?ref=mail`,
    $pathname: `/products/${index % 500}`,
    $host: 'shop.example.com',
    $browser: 'Firefox',
    $browser_version: 128,
    $os: 'Linux',
    $device_type: 'Desktop',
    $screen_height: 1080,
    $screen_width: 1920,
    $viewport_height: 940,
    $viewport_width: 1903,
    $lib: 'web',
    $lib_version: '1.200.0',
    $session_id: '0197c5a0-0000-7000-8000-000000000001',
    $window_id: '0197c5a0-0000-7000-8000-000000000002',
    $referrer: '$direct',
    $referring_domain: '$direct',
    '$feature/flag-0': 'test',
    '$feature/flag-1': true,
    $active_feature_flags: ['flag-0', 'flag-1'],
    currency: 'NOK',
    price: 1499,
    quantity: 1,
    category: 'shoes',
    in_stock: true,
    color: 'blue',
    step: index % 10,
    title: 'Running shoes, blue, size 42',
  }
  return {
    event: '$pageview',
    distinct_id: `user-${index % 2000}`,
    uuid: uuidOf(index),
    timestamp: new Date().toISOString(),
    properties,
    ...overrides,
  }
}

/** The same with what posthog-js adds of the visitor. Ten in a row are of one, as in a page's batch. */
export function visitBody(index: number): Record<string, unknown> {
  const { properties, ...event } = eventBody(index)
  const visitor = Math.floor(index / 10) % 2_000
  const $raw_user_agent = `Mozilla/5.0 (X11; Linux x86_64; rv:${visitor}.0) Gecko/20100101 Firefox/${visitor}.0`
  const $device_id = `0197c5a0-0000-7000-8000-${visitor.toString(16).padStart(12, '0')}`
  const more = { $raw_user_agent, $timezone: 'Europe/Oslo', $device_id }
  return { ...event, properties: { ...(properties as object), ...more } }
}

/** A visit as posthog-js sends it without cookies. */
export function cookielessBody(index: number): object {
  const { properties, ...event } = visitBody(index)
  const { $session_id, $window_id, $device_id, ...others } = properties as Record<string, unknown>
  return { ...event, distinct_id: '$posthog_cookieless', properties: { ...others, $cookieless_mode: true } }
}

export function captureBody(index: number, event: (index: number) => object = eventBody): Buffer {
  return Buffer.from(JSON.stringify({ api_key: projectKey, ...event(index) }))
}

export function batchJson(firstIndex: number, count: number, event: (index: number) => object = eventBody): Buffer {
  const batch = Array.from({ length: count }, (_, offset) => event(firstIndex + offset))
  return Buffer.from(JSON.stringify({ api_key: projectKey, batch, sent_at: new Date().toISOString() }))
}

export function gzipped(body: Buffer): Buffer {
  return gzipSync(body)
}

/** For version 7 uuids with the current time, like their events: any other time would raise a warning per event. */
const uuidTime = Date.now().toString(16).padStart(12, '0')

function uuidOf(index: number): string {
  return `${uuidTime.slice(0, 8)}-${uuidTime.slice(8)}-7000-8000-${index.toString(16).padStart(12, '0')}`
}
