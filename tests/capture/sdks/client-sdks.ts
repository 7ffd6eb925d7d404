// Libraries for pages and phones, and requests without a library. Source: docs/wire/clients.md 1 rule 16, 3.3, 3.4, 4, 5.2;
// docs/wire/ingestion.md 1–3 for the stored events.

import lzString from 'lz-string'
import {
  asWritten,
  base64,
  corrected,
  form,
  gzip,
  gzippedJson,
  happenedAt,
  json,
  post,
  receivedAt,
  type SdkRequest,
  sentAt,
  sentAtMs,
  signedUp,
  signUp,
  uuidOf,
} from './sdk-request.ts'

export function clientSdks(token: string): SdkRequest[] {
  return [...browserSdks(token), ...liteSdks(token), ...mobileSdks(token), ...directCalls(token)]
}

const formOf = (fields: Record<string, string>) => new URLSearchParams(fields).toString()
const lz64 = (value: unknown) => lzString.compressToBase64(JSON.stringify(value))

function browserSdks(token: string): SdkRequest[] {
  const page = (distinctId: string, over: object = {}) => ({
    event: '$pageview',
    properties: { $lib: 'web', token, distinct_id: distinctId, $current_url: 'https://shop.example/é' },
    ...over,
  })
  const stored = (distinctId: string, timestamp: string, over: { uuid?: string } = {}) => ({
    ...{ event: '$pageview', distinctId, timestamp, ...over },
    properties: { distinct_id: distinctId, token, $current_url: 'https://shop.example/é' },
  })
  const withOffset = (distinctId: string) => page(distinctId, { offset: 3000 })
  const atOffset = (distinctId: string) => stored(distinctId, '2025-07-01T10:59:57.000Z')
  const dated = (distinctId: string) => page(distinctId, { timestamp: happenedAt, uuid: uuidOf(distinctId) })
  const atDate = (distinctId: string) => stored(distinctId, corrected, { uuid: uuidOf(distinctId) })
  const text = { 'content-type': 'text/plain' }
  const query = `ip=1&_=${sentAtMs}`
  return [
    post(
      'posthog-js 1.0–1.40 before its config',
      `/e/?${query}`,
      form,
      formOf({ data: base64([withOffset('js-1')]) }),
      atOffset('js-1'),
    ),
    {
      ...post('posthog-js 1.0, GET', '', {}, '', stored('js-get', receivedAt)),
      method: 'GET',
      path: `/e/?${formOf({ data: base64(page('js-get')), ip: '1', _: String(sentAtMs) })}`,
    },
    post(
      'posthog-js 1.8–1.199',
      `/e/?compression=gzip-js&${query}&ver=1.57.4`,
      text,
      gzip([withOffset('js-57')]),
      atOffset('js-57'),
    ),
    post(
      'posthog-js ≤ 1.57, lz64',
      `/e/?compression=lz64&${query}&ver=1.20.0`,
      form,
      formOf({ data: lz64(dated('js-lz64')), compression: 'lz64' }),
      atDate('js-lz64'),
    ),
    {
      ...post(
        'posthog-js 1.87–1.391, a page that closes',
        `/e/?${query}&ver=1.116.6&beacon=1`,
        form,
        formOf({ data: base64(withOffset('js-beacon')) }),
        atOffset('js-beacon'),
      ),
      status: 204,
    },
    post(
      'posthog-js 1.116, compression off',
      `/i/v0/e/?${query}&ver=1.116.6`,
      json,
      dated('js-json'),
      atDate('js-json'),
    ),
    post(
      'posthog-js 1.136–1.398, first posts',
      `/e/?compression=gzip-js&ip=0&_=${sentAtMs}&ver=1.231.0&retry_count=2`,
      text,
      gzip([withOffset('js-231')]),
      atOffset('js-231'),
    ),
    post('posthog-js 1.398.2–1.407.2, no hint', `/e/?_=${sentAtMs}`, text, gzip([dated('js-398')]), atDate('js-398')),
    post(
      'posthog-js 1.407.3–1.418',
      '/e/',
      text,
      gzip({ api_key: token, batch: [withOffset('js-410')], sent_at: sentAt }),
      atOffset('js-410'),
    ),
    post(
      'posthog-js 1.434–',
      '/i/v0/e/',
      text,
      gzip({ api_key: token, batch: [dated('js-449')], sent_at: sentAt }),
      atDate('js-449'),
    ),
  ]
}

function liteSdks(token: string): SdkRequest[] {
  const properties = { plan: 'pro', $lib: 'js' }
  const library = { type: 'capture', library: 'js', library_version: '2.0.0' }
  const envelope = (distinctId: string) => ({
    api_key: token,
    batch: [signUp(distinctId, { properties, ...library, timestamp: happenedAt })],
    sent_at: sentAt,
  })
  const lz64Form = (distinctId: string) => `compression=lz64&data=${encodeURIComponent(lz64(envelope(distinctId)))}`
  const stored = (distinctId: string) => signedUp(distinctId, corrected)
  return [
    post('posthog-js-lite 2.0–3.0', `/e/?ip=1&_=${sentAtMs}&v=2.0.0`, form, lz64Form('lite-2'), stored('lite-2')),
    post('posthog-react-native < 3.3', `/e/?ip=1&_=${sentAtMs}&v=2.11.0`, form, lz64Form('rn-2'), stored('rn-2')),
    post('posthog-js-lite 3.2–', '/batch/', json, envelope('lite-3'), stored('lite-3')),
    post('posthog-js-lite 4.0–', '/batch/', gzippedJson, gzip(envelope('lite-4')), stored('lite-4')),
  ]
}

function mobileSdks(token: string): SdkRequest[] {
  const properties = { plan: 'pro', $groups: { company: 'acme' } }
  const batchOf = (distinctId: string) => [
    signUp(distinctId, { properties, timestamp: happenedAt, uuid: uuidOf(distinctId) }),
  ]
  const stored = (distinctId: string) => signedUp(distinctId, corrected, { uuid: uuidOf(distinctId) })
  const gzipped = { 'content-type': 'application/json; charset=utf-8', 'content-encoding': 'gzip' }
  const keyLast = { batch: batchOf('android-2'), api_key: token, sent_at: sentAt }
  const envelope = (distinctId: string) => ({ api_key: token, batch: batchOf(distinctId), sent_at: sentAt })
  const android = (version: string) => ({ ...gzipped, 'user-agent': `posthog-android/${version}` })
  return [
    post('posthog-android 1–2', '/batch', android('2.0.3'), gzip(keyLast), stored('android-2')),
    post('posthog-android 3', '/batch', android('3.19.1'), gzip(envelope('android-3')), stored('android-3')),
    post('posthog-ios 2–3', '/batch', gzipped, gzip(envelope('ios-3')), stored('ios-3')),
    post('posthog-react-native 3.3–', '/batch/', json, envelope('rn-3'), stored('rn-3')),
  ]
}

/** Requests that people and scripts send, with the key in every place that is allowed. */
function directCalls(token: string): SdkRequest[] {
  const single = (distinctId: string) => signUp(distinctId, { timestamp: happenedAt })
  const stored = (distinctId: string) => signedUp(distinctId, asWritten)
  const inHeader = { ...json, 'x-posthog-project-api-key': token }
  const inQuery = `/e/?token=${encodeURIComponent(token)}`
  const inForm = formOf({ data: base64([single('key-form')]), api_key: token })
  return [
    post('curl, one event', '/capture/', json, { api_key: token, ...single('curl') }, stored('curl')),
    post('curl, /track with a base64 body', '/track/', {}, base64({ token, ...single('track') }), stored('track')),
    post(
      'curl, /engage',
      '/engage/',
      json,
      { token, distinct_id: 'engage', $set: { plan: 'pro' } },
      { event: '$identify', distinctId: 'engage', timestamp: receivedAt, properties: {}, set: { plan: 'pro' } },
    ),
    post('a key in the header', '/batch/', inHeader, { batch: [single('key-header')] }, stored('key-header')),
    post('a key in the query', inQuery, json, [single('key-query')], stored('key-query')),
    post('a key in the form', '/e/', form, inForm, stored('key-form')),
    post(
      'a key in the first item',
      '/batch/',
      json,
      { batch: [{ api_key: token, ...single('key-item') }] },
      stored('key-item'),
    ),
    post('a list named data', '/capture/', json, { token, data: [single('key-data')] }, stored('key-data')),
  ]
}
