// Libraries that gzip, wherever they run, and libraries for phones. Source: docs/wire/clients.md 3.

import { corrected, gzip, happenedAt, json, post, type SdkRequest, sentAt, uuidOf } from './sdk-request.ts'

export function gzippingSdks(token: string): SdkRequest[] {
  const gzipHeader = { ...json, 'content-encoding': 'gzip' }
  const batchOf = (distinctId: string) => ({
    api_key: token,
    batch: [
      {
        event: 'sign up',
        distinct_id: distinctId,
        properties: { plan: 'pro', $is_server: true },
        timestamp: happenedAt,
        uuid: uuidOf(distinctId),
      },
    ],
    sent_at: sentAt,
  })
  const storedOf = (distinctId: string) => [
    {
      event: 'sign up',
      distinctId,
      timestamp: corrected,
      uuid: uuidOf(distinctId),
      properties: { plan: 'pro', $is_server: true },
    },
  ]
  const gzipped = (sdk: string, path: string, distinctId: string, headers: Record<string, string> = gzipHeader) =>
    post(sdk, path, headers, gzip(batchOf(distinctId)), storedOf(distinctId))
  return [
    gzipped('posthog-node 5.x', '/batch/', 'node-5'),
    gzipped('posthog-python 7, gzip=True', '/batch/', 'python-7'),
    gzipped('posthog-php, compress_request', '/batch/', 'php-gzip'),
    gzipped('posthog-ruby 3.16–', '/batch/', 'ruby-3'),
    gzipped('posthog-go 1.10–, named twice', '/batch/?compression=gzip', 'go-gzip'),
    gzipped('posthog-dotnet 2.3–', '/batch', 'dotnet-gzip'),
    gzipped('posthog-elixir 2.4–', '/batch', 'elixir-2'),
    gzipped('posthog-rs, named twice', '/batch/?compression=gzip', 'rs-gzip'),
    gzipped('captureAi of node and python', '/i/v0/ai/batch/', 'ai'),
  ]
}

export function mobileSdks(token: string): SdkRequest[] {
  const properties = { plan: 'pro', $groups: { company: 'acme' } }
  const batch = (distinctId: string) => [
    { event: 'sign up', distinct_id: distinctId, properties, timestamp: happenedAt, uuid: uuidOf(distinctId) },
  ]
  const stored = (distinctId: string, timestamp: string) => [
    { event: 'sign up', distinctId, timestamp, uuid: uuidOf(distinctId), properties: { plan: 'pro' } },
  ]
  const gzipHeader = { 'content-type': 'application/json; charset=utf-8', 'content-encoding': 'gzip' }
  return [
    post(
      'posthog-android 1–2',
      '/batch',
      { ...gzipHeader, 'user-agent': 'posthog-android/2.0.3' },
      gzip({ batch: batch('android-2'), api_key: token, sent_at: sentAt }),
      stored('android-2', corrected),
    ),
    post(
      'posthog-android 3',
      '/batch',
      { ...gzipHeader, 'user-agent': 'posthog-android/3.19.1' },
      gzip({ api_key: token, batch: batch('android-3'), sent_at: sentAt }),
      stored('android-3', corrected),
    ),
    post(
      'posthog-ios 2–3',
      '/batch',
      gzipHeader,
      gzip({ api_key: token, batch: batch('ios-3'), sent_at: sentAt }),
      stored('ios-3', corrected),
    ),
    post(
      'posthog-react-native 3.3–',
      '/batch/',
      json,
      { api_key: token, batch: batch('rn-3'), sent_at: sentAt },
      stored('rn-3', corrected),
    ),
  ]
}
