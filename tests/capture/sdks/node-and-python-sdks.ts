// posthog-node and posthog-python. Source: docs/wire/clients.md 3.1, 3.2.

import { corrected, happenedAt, json, post, type SdkRequest, sentAt, uuid } from './sdk-request.ts'

export function nodeAndPythonSdks(token: string): SdkRequest[] {
  const $lib = (name: string, version: string) => ({ $lib: name, $lib_version: version })
  return [
    post(
      'posthog-node 2.0–3.0',
      '/batch/',
      { 'user-agent': 'axios/0.27.2', ...json },
      {
        api_key: token,
        batch: [
          {
            distinct_id: 'node-2',
            event: 'sign up',
            properties: {
              plan: 'pro',
              $groups: { company: 'acme' },
              ...$lib('posthog-node', '2.6.0'),
              $geoip_disable: true,
            },
            type: 'capture',
            library: 'posthog-node',
            library_version: '2.6.0',
            timestamp: happenedAt,
          },
        ],
        sent_at: sentAt,
      },
      [
        {
          event: 'sign up',
          distinctId: 'node-2',
          timestamp: corrected,
          properties: { plan: 'pro', $geoip_disable: true },
        },
      ],
    ),
    post(
      'posthog-node 4.x',
      '/batch/',
      { 'user-agent': 'posthog-node/4.18.0', ...json },
      {
        api_key: token,
        batch: [
          {
            distinct_id: 'node-4',
            event: '$identify',
            properties: { $set: { plan: 'pro' }, $set_once: { first: 1 }, ...$lib('posthog-node', '4.18.0') },
            type: 'capture',
            uuid: uuid(4),
            timestamp: happenedAt,
          },
        ],
        sent_at: sentAt,
      },
      [
        {
          event: '$identify',
          distinctId: 'node-4',
          timestamp: corrected,
          uuid: uuid(4),
          properties: { $lib: 'posthog-node' },
          set: { plan: 'pro' },
        },
      ],
    ),
    post(
      'posthog-python 1.0',
      '/batch/',
      { 'user-agent': 'analytics-python/1.0.9', ...json },
      {
        batch: [
          {
            messageId: uuid(10),
            context: { library: { name: 'posthog-python', version: '1.0.9' } },
            type: 'capture',
            event: 'sign up',
            distinct_id: 'python-1',
            properties: { plan: 'pro', ...$lib('posthog-python', '1.0.9') },
            timestamp: '2025-07-01T10:59:50+00:00',
          },
          {
            messageId: uuid(11),
            context: {},
            type: 'alias',
            event: '$create_alias',
            distinct_id: null,
            properties: { distinct_id: 'python-1-before', alias: 'python-1' },
            timestamp: '2025-07-01T10:59:50+00:00',
          },
        ],
        sentAt: '2025-07-01T10:59:55+00:00',
        api_key: token,
      },
      [
        { event: 'sign up', distinctId: 'python-1', timestamp: corrected, uuid: uuid(10), properties: { plan: 'pro' } },
        {
          event: '$create_alias',
          distinctId: 'python-1-before',
          timestamp: corrected,
          uuid: uuid(11),
          properties: { alias: 'python-1' },
        },
      ],
    ),
    post(
      'posthog-python 3.5–6.x',
      '/batch/',
      { 'user-agent': 'posthog-python/3.5.0', ...json },
      {
        batch: [
          {
            event: '$identify',
            distinct_id: 'python-3',
            properties: $lib('posthog-python', '3.5.0'),
            $set: { plan: 'pro' },
            timestamp: '2025-07-01T10:59:50.123456+00:00',
            context: {},
          },
        ],
        historical_migration: false,
        sentAt: '2025-07-01T10:59:55.000000+00:00',
        api_key: token,
      },
      [
        {
          event: '$identify',
          distinctId: 'python-3',
          timestamp: '2025-07-01T10:59:55.123Z',
          properties: { $lib_version: '3.5.0' },
          set: { plan: 'pro' },
        },
      ],
    ),
    post(
      'posthog-python, historical_migration',
      '/batch/',
      json,
      {
        batch: [
          {
            event: 'order',
            distinct_id: 'python-import',
            properties: {},
            timestamp: '2020-02-29T12:00:00+00:00',
            uuid: uuid(12),
          },
        ],
        historical_migration: true,
        sent_at: sentAt,
        api_key: token,
      },
      [
        {
          event: 'order',
          distinctId: 'python-import',
          timestamp: '2020-02-29T12:00:00Z',
          uuid: uuid(12),
          properties: {},
          historicalMigration: true,
        },
      ],
    ),
  ]
}
