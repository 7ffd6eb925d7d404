// Libraries for servers. Source: docs/wire/clients.md 3, row by row; docs/wire/ingestion.md 1–3 for the stored events.

import {
  asWritten,
  corrected,
  gzip,
  gzippedJson,
  happenedAt,
  json,
  post,
  receivedAt,
  type SdkRequest,
  sentAt,
  signedUp,
  signUp,
  uuidOf,
} from './sdk-request.ts'

export function serverSdks(token: string): SdkRequest[] {
  return [...nodeAndPythonSdks(token), ...otherServerSdks(token), ...gzippingSdks(token)]
}

function nodeAndPythonSdks(token: string): SdkRequest[] {
  const $lib = (name: string, version: string) => ({ $lib: name, $lib_version: version })
  const node2 = { plan: 'pro', $groups: { company: 'acme' }, ...$lib('posthog-node', '2.6.0'), $geoip_disable: true }
  const old = { type: 'capture', library: 'posthog-node', library_version: '2.6.0', timestamp: happenedAt }
  const set = { plan: 'pro' }
  const node4 = { $set: set, $set_once: { first: 1 }, ...$lib('posthog-node', '4.18.0') }
  const python1 = { plan: 'pro', ...$lib('posthog-python', '1.0.9') }
  const context = { library: { name: 'posthog-python', version: '1.0.9' } }
  const alias = { distinct_id: 'python-1-before', alias: 'python-1' }
  const timestamp = '2025-07-01T10:59:50+00:00'
  const importedAt = '2020-02-29T12:00:00+00:00'
  return [
    post(
      'posthog-node 2.0–3.0',
      '/batch/',
      { 'user-agent': 'axios/0.27.2', ...json },
      { api_key: token, batch: [signUp('node-2', { properties: node2, ...old })], sent_at: sentAt },
      signedUp('node-2', corrected, { properties: { plan: 'pro', $geoip_disable: true } }),
    ),
    post(
      'posthog-node 4.x',
      '/batch/',
      { 'user-agent': 'posthog-node/4.18.0', ...json },
      {
        api_key: token,
        batch: [
          {
            ...{ distinct_id: 'node-4', event: '$identify', properties: node4 },
            ...{ type: 'capture', uuid: uuidOf('node-4'), timestamp: happenedAt },
          },
        ],
        sent_at: sentAt,
      },
      {
        ...{ event: '$identify', distinctId: 'node-4', timestamp: corrected, uuid: uuidOf('node-4') },
        ...{ properties: { $lib: 'posthog-node' }, set },
      },
    ),
    post(
      'posthog-python 1.0',
      '/batch/',
      { 'user-agent': 'analytics-python/1.0.9', ...json },
      {
        batch: [
          {
            ...{ messageId: uuidOf('python-1'), context, type: 'capture' },
            ...signUp('python-1', { properties: python1, timestamp }),
          },
          {
            ...{ messageId: uuidOf('python-1-before'), context: {}, type: 'alias' },
            ...{ event: '$create_alias', distinct_id: null, properties: alias, timestamp },
          },
        ],
        sentAt: '2025-07-01T10:59:55+00:00',
        api_key: token,
      },
      signedUp('python-1', corrected, { uuid: uuidOf('python-1') }),
      {
        ...{ event: '$create_alias', distinctId: 'python-1-before', timestamp: corrected },
        ...{ uuid: uuidOf('python-1-before'), properties: { alias: 'python-1' } },
      },
    ),
    post(
      'posthog-python 3.5–6.x',
      '/batch/',
      { 'user-agent': 'posthog-python/3.5.0', ...json },
      {
        batch: [
          {
            ...{ event: '$identify', distinct_id: 'python-3', properties: $lib('posthog-python', '3.5.0') },
            ...{ $set: set, timestamp: '2025-07-01T10:59:50.123456+00:00', context: {} },
          },
        ],
        historical_migration: false,
        sentAt: '2025-07-01T10:59:55.000000+00:00',
        api_key: token,
      },
      {
        ...{ event: '$identify', distinctId: 'python-3', timestamp: '2025-07-01T10:59:55.123Z' },
        ...{ properties: { $lib_version: '3.5.0' }, set },
      },
    ),
    post(
      'posthog-python, historical_migration',
      '/batch/',
      json,
      {
        batch: [signUp('python-import', { timestamp: importedAt, uuid: uuidOf('python-import') })],
        historical_migration: true,
        sent_at: sentAt,
        api_key: token,
      },
      signedUp('python-import', '2020-02-29T12:00:00Z', { uuid: uuidOf('python-import'), historicalMigration: true }),
    ),
  ]
}

function otherServerSdks(token: string): SdkRequest[] {
  const charset = { 'content-type': 'application/json; charset=utf-8' }
  const php = { $lib: 'posthog-php', $lib_version: '4.13.2', $lib_consumer: 'LibCurl' }
  const php2 = { library: 'posthog-php', library_version: '2.1.1', library_consumer: 'LibCurl', type: 'capture' }
  const php4 = { groups: [], timestamp: '2025-07-01T10:59:50.500000+00:00' }
  const ruby = { library: 'posthog-ruby', library_version: '2.5.0', type: 'capture' }
  const go = {
    ...{ uuid: '', library: 'posthog-go', library_version: '1.4.10' },
    timestamp: '2025-07-01T10:59:50.123456789Z',
  }
  const wholeMs = '2025-07-01T10:59:50.123Z'
  const withGroups = { properties: { plan: 'pro', $groups: [] } }
  const alias = (of: string) => ({ event: '$create_alias', properties: { distinct_id: `${of}-alias`, alias: of } })
  const aliasOf = (of: string, timestamp: string) => ({
    ...{ event: '$create_alias', distinctId: `${of}-alias`, timestamp },
    properties: { alias: of },
  })
  return [
    post(
      'posthog-php 2.0–2.1',
      '/batch/',
      { 'user-agent': 'posthog-php/2.1.1', ...json },
      {
        batch: [signUp('php-2', { ...withGroups, groups: [], ...php2, timestamp: '2025-07-01T10:59:50+00:00' })],
        api_key: token,
      },
      signedUp('php-2', asWritten, withGroups),
    ),
    post(
      'posthog-php 3.x by raw socket, 4.x',
      '/batch/',
      { accept: 'application/json', 'user-agent': 'posthog-php/4.13.2', ...json },
      {
        batch: [
          { event: '$identify', distinct_id: 'php-4', properties: php, $set: [], ...php4 },
          { ...alias('php-4'), distinct_id: null, ...php4 },
        ],
        api_key: token,
      },
      { event: '$identify', distinctId: 'php-4', timestamp: '2025-07-01T10:59:50.500Z', properties: php },
      aliasOf('php-4', '2025-07-01T10:59:50.500Z'),
    ),
    post(
      'posthog-ruby 2.0–3.6',
      '/batch/',
      { accept: 'application/json', 'user-agent': 'posthog-ruby/2.5.0', ...json },
      {
        api_key: token,
        batch: [{ messageId: uuidOf('ruby-2'), timestamp: happenedAt, ...ruby, ...signUp('ruby-2') }],
      },
      signedUp('ruby-2', asWritten, { uuid: uuidOf('ruby-2') }),
    ),
    post(
      'posthog-go ≤ 1.4',
      '/batch/',
      { 'user-agent': 'posthog-go (version: 1.4.10)', ...json },
      {
        api_key: token,
        batch: [
          { ...go, type: 'capture', ...signUp('go-1'), send_feature_flags: false },
          { ...go, type: 'alias', ...alias('go-1') },
        ],
      },
      signedUp('go-1', wholeMs),
      aliasOf('go-1', wholeMs),
    ),
    post(
      'posthog-dotnet',
      '/batch',
      charset,
      {
        api_key: token,
        historical_migration: false,
        batch: [signUp('dotnet-batch', { timestamp: '2025-07-01T12:59:50.1234567+02:00' })],
      },
      signedUp('dotnet-batch', wholeMs),
    ),
    post(
      'posthog-dotnet, single',
      '/capture',
      charset,
      { api_key: token, ...signUp('dotnet-single', { timestamp: happenedAt }) },
      signedUp('dotnet-single', asWritten),
    ),
    post(
      'posthog-elixir 0.4',
      '/capture?v=3',
      json,
      {
        api_key: token,
        batch: [
          { event: 'sign up', properties: { distinct_id: 'elixir-0', plan: 'pro' }, timestamp: null },
          { event: 'log in', properties: { distinct_id: 'elixir-0' }, timestamp: happenedAt },
        ],
      },
      signedUp('elixir-0', receivedAt),
      { event: 'log in', distinctId: 'elixir-0', timestamp: asWritten, properties: {} },
    ),
    post(
      'posthog-elixir 1.x',
      '/capture',
      json,
      { api_key: token, ...signUp('elixir-1') },
      signedUp('elixir-1', receivedAt),
    ),
    post(
      'posthog-rs, single',
      '/i/v0/e/',
      json,
      {
        ...{ api_key: token, uuid: uuidOf('rs-single') },
        ...{ event: 'sign up', $distinct_id: 'rs-single', properties: { plan: 'pro' } },
      },
      signedUp('rs-single', receivedAt, { uuid: uuidOf('rs-single') }),
    ),
    post(
      'posthog-java 1.x',
      '/batch',
      json,
      {
        api_key: token,
        batch: [{ uuid: uuidOf('java-1'), timestamp: '2025-07-01T10:59:50.123456Z', ...signUp('java-1') }],
      },
      signedUp('java-1', wholeMs, { uuid: uuidOf('java-1') }),
    ),
  ]
}

/** Libraries that gzip, wherever they run. */
function gzippingSdks(token: string): SdkRequest[] {
  const properties = { plan: 'pro', $is_server: true }
  const gzipped = (sdk: string, path: string, distinctId: string) => {
    const uuid = uuidOf(distinctId)
    const batch = [signUp(distinctId, { properties, timestamp: happenedAt, uuid })]
    const stored = signedUp(distinctId, corrected, { uuid, properties })
    return post(sdk, path, gzippedJson, gzip({ api_key: token, batch, sent_at: sentAt }), stored)
  }
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
