// Libraries for web pages. Source: docs/wire/clients.md 3.3, 3.4.

import lzString from 'lz-string'
import {
  corrected,
  formType,
  gzip,
  happenedAt,
  json,
  post,
  receivedAt,
  type SdkRequest,
  type StoredBySdk,
  sentAt,
  sentAtMs,
  uuidOf,
} from './sdk-request.ts'

export function browserSdks(token: string): SdkRequest[] {
  const page = (distinctId: string, over: object = {}) => ({
    event: '$pageview',
    properties: { $lib: 'web', token, distinct_id: distinctId, $current_url: 'https://shop.example/é' },
    ...over,
  })
  const stored = (distinctId: string, timestamp: string, over: { uuid?: string } = {}): readonly StoredBySdk[] => [
    {
      event: '$pageview',
      distinctId,
      timestamp,
      properties: { distinct_id: distinctId, token, $current_url: 'https://shop.example/é' },
      ...over,
    },
  ]
  const offset = { offset: 3000 }
  const atOffset = '2025-07-01T10:59:57.000Z'
  const form = { 'content-type': formType }
  const text = { 'content-type': 'text/plain' }
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  const lz64 = (value: unknown) => lzString.compressToBase64(JSON.stringify(value))
  const formOf = (fields: Record<string, string>) => new URLSearchParams(fields).toString()
  const js = (distinctId: string) => page(distinctId, { timestamp: happenedAt, uuid: uuidOf(distinctId) })
  return [
    post(
      'posthog-js 1.0–1.40 before its config',
      `/e/?ip=1&_=${sentAtMs}`,
      form,
      formOf({ data: base64([page('js-1', offset)]) }),
      stored('js-1', atOffset),
    ),
    {
      sdk: 'posthog-js 1.0, GET',
      method: 'GET',
      headers: {},
      body: '',
      path: `/e/?${formOf({ data: base64(page('js-get')), ip: '1', _: String(sentAtMs) })}`,
      stored: stored('js-get', receivedAt),
    },
    post(
      'posthog-js 1.8–1.199',
      `/e/?compression=gzip-js&ip=1&_=${sentAtMs}&ver=1.57.4`,
      text,
      gzip([page('js-57', offset)]),
      stored('js-57', atOffset),
    ),
    post(
      'posthog-js ≤ 1.57, lz64',
      `/e/?compression=lz64&ip=1&_=${sentAtMs}&ver=1.20.0`,
      form,
      formOf({ data: lz64(js('js-lz64')), compression: 'lz64' }),
      stored('js-lz64', corrected, { uuid: uuidOf('js-lz64') }),
    ),
    {
      ...post(
        'posthog-js 1.87–1.391, a page that closes',
        `/e/?ip=1&_=${sentAtMs}&ver=1.116.6&beacon=1`,
        form,
        formOf({ data: base64(page('js-beacon', offset)) }),
        stored('js-beacon', atOffset),
      ),
      status: 204,
    },
    post(
      'posthog-js 1.116, compression off',
      `/i/v0/e/?ip=1&_=${sentAtMs}&ver=1.116.6`,
      json,
      js('js-json'),
      stored('js-json', corrected, { uuid: uuidOf('js-json') }),
    ),
    post(
      'posthog-js 1.136–1.398, first posts',
      `/e/?compression=gzip-js&ip=0&_=${sentAtMs}&ver=1.231.0&retry_count=2`,
      text,
      gzip([page('js-231', offset)]),
      stored('js-231', atOffset),
    ),
    post(
      'posthog-js 1.398.2–1.407.2, no hint',
      `/e/?_=${sentAtMs}`,
      text,
      gzip([js('js-398')]),
      stored('js-398', corrected, { uuid: uuidOf('js-398') }),
    ),
    post(
      'posthog-js 1.407.3–1.418',
      '/e/',
      text,
      gzip({ api_key: token, batch: [page('js-410', offset)], sent_at: sentAt }),
      stored('js-410', atOffset),
    ),
    post(
      'posthog-js 1.434–',
      '/i/v0/e/',
      text,
      gzip({ api_key: token, batch: [js('js-449')], sent_at: sentAt }),
      stored('js-449', corrected, { uuid: uuidOf('js-449') }),
    ),
  ]
}

export function liteSdks(token: string): SdkRequest[] {
  const envelope = (distinctId: string) => ({
    api_key: token,
    batch: [
      {
        distinct_id: distinctId,
        event: 'sign up',
        properties: { plan: 'pro', $lib: 'js' },
        type: 'capture',
        library: 'js',
        library_version: '2.0.0',
        timestamp: happenedAt,
      },
    ],
    sent_at: sentAt,
  })
  const stored = (distinctId: string) => [
    { event: 'sign up', distinctId, timestamp: corrected, properties: { plan: 'pro' } },
  ]
  const lz64Form = (distinctId: string) =>
    `compression=lz64&data=${encodeURIComponent(lzString.compressToBase64(JSON.stringify(envelope(distinctId))))}`
  const form = { 'content-type': formType }
  return [
    post('posthog-js-lite 2.0–3.0', `/e/?ip=1&_=${sentAtMs}&v=2.0.0`, form, lz64Form('lite-2'), stored('lite-2')),
    post('posthog-react-native < 3.3', `/e/?ip=1&_=${sentAtMs}&v=2.11.0`, form, lz64Form('rn-2'), stored('rn-2')),
    post('posthog-js-lite 3.2–', '/batch/', json, envelope('lite-3'), stored('lite-3')),
    post(
      'posthog-js-lite 4.0–',
      '/batch/',
      { ...json, 'content-encoding': 'gzip' },
      gzip(envelope('lite-4')),
      stored('lite-4'),
    ),
  ]
}
