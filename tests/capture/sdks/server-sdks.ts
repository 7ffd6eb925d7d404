// Libraries for servers in other languages. Source: docs/wire/clients.md 3.4.

import { asWritten, happenedAt, json, post, receivedAt, type SdkRequest, uuid } from './sdk-request.ts'

export function serverSdks(token: string): SdkRequest[] {
  const php = { $lib: 'posthog-php', $lib_version: '4.13.2', $lib_consumer: 'LibCurl' }
  return [
    post(
      'posthog-php 2.0–2.1',
      '/batch/',
      { 'user-agent': 'posthog-php/2.1.1', ...json },
      {
        batch: [
          {
            event: 'sign up',
            distinct_id: 'php-2',
            properties: { plan: 'pro', $groups: [] },
            groups: [],
            library: 'posthog-php',
            library_version: '2.1.1',
            library_consumer: 'LibCurl',
            timestamp: '2025-07-01T10:59:50+00:00',
            type: 'capture',
          },
        ],
        api_key: token,
      },
      [{ event: 'sign up', distinctId: 'php-2', timestamp: asWritten, properties: { plan: 'pro', $groups: [] } }],
    ),
    post(
      'posthog-php 3.x by raw socket, 4.x',
      '/batch/',
      { accept: 'application/json', 'user-agent': 'posthog-php/4.13.2', ...json },
      {
        batch: [
          {
            event: '$identify',
            distinct_id: 'php-4',
            properties: php,
            $set: [],
            groups: [],
            timestamp: '2025-07-01T10:59:50.500000+00:00',
          },
          {
            event: '$create_alias',
            distinct_id: null,
            properties: { distinct_id: 'php-4-alias', alias: 'php-4', ...php },
            groups: [],
            timestamp: '2025-07-01T10:59:50.500000+00:00',
          },
        ],
        api_key: token,
      },
      [
        { event: '$identify', distinctId: 'php-4', timestamp: '2025-07-01T10:59:50.500Z', properties: php },
        {
          event: '$create_alias',
          distinctId: 'php-4-alias',
          timestamp: '2025-07-01T10:59:50.500Z',
          properties: { alias: 'php-4' },
        },
      ],
    ),
    post(
      'posthog-ruby 2.0–3.6',
      '/batch/',
      { accept: 'application/json', 'user-agent': 'posthog-ruby/2.5.0', ...json },
      {
        api_key: token,
        batch: [
          {
            messageId: uuid(20),
            timestamp: '2025-07-01T10:59:50.000Z',
            library: 'posthog-ruby',
            library_version: '2.5.0',
            type: 'capture',
            distinct_id: 'ruby-2',
            event: 'sign up',
            properties: { plan: 'pro' },
          },
        ],
      },
      [{ event: 'sign up', distinctId: 'ruby-2', timestamp: asWritten, uuid: uuid(20), properties: { plan: 'pro' } }],
    ),
    post(
      'posthog-go ≤ 1.4',
      '/batch/',
      { 'user-agent': 'posthog-go (version: 1.4.10)', ...json },
      {
        api_key: token,
        batch: [
          {
            uuid: '',
            type: 'capture',
            library: 'posthog-go',
            library_version: '1.4.10',
            timestamp: '2025-07-01T10:59:50.123456789Z',
            distinct_id: 'go-1',
            event: 'sign up',
            properties: { plan: 'pro' },
            send_feature_flags: false,
          },
          {
            uuid: '',
            type: 'alias',
            library: 'posthog-go',
            library_version: '1.4.10',
            timestamp: '2025-07-01T10:59:50.123456789Z',
            event: '$create_alias',
            properties: { distinct_id: 'go-1-alias', alias: 'go-1' },
          },
        ],
      },
      [
        { event: 'sign up', distinctId: 'go-1', timestamp: '2025-07-01T10:59:50.123Z', properties: { plan: 'pro' } },
        {
          event: '$create_alias',
          distinctId: 'go-1-alias',
          timestamp: '2025-07-01T10:59:50.123Z',
          properties: { alias: 'go-1' },
        },
      ],
    ),
    post(
      'posthog-dotnet',
      '/batch',
      { 'content-type': 'application/json; charset=utf-8' },
      {
        api_key: token,
        historical_migration: false,
        batch: [
          {
            event: 'sign up',
            distinct_id: 'dotnet-batch',
            properties: { plan: 'pro' },
            timestamp: '2025-07-01T12:59:50.1234567+02:00',
          },
        ],
      },
      [
        {
          event: 'sign up',
          distinctId: 'dotnet-batch',
          timestamp: '2025-07-01T10:59:50.123Z',
          properties: { plan: 'pro' },
        },
      ],
    ),
    post(
      'posthog-dotnet, single',
      '/capture',
      { 'content-type': 'application/json; charset=utf-8' },
      {
        api_key: token,
        event: 'sign up',
        distinct_id: 'dotnet-single',
        properties: { plan: 'pro' },
        timestamp: happenedAt,
      },
      [{ event: 'sign up', distinctId: 'dotnet-single', timestamp: asWritten, properties: { plan: 'pro' } }],
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
      [
        { event: 'sign up', distinctId: 'elixir-0', timestamp: receivedAt, properties: { plan: 'pro' } },
        { event: 'log in', distinctId: 'elixir-0', timestamp: asWritten, properties: {} },
      ],
    ),
    post(
      'posthog-elixir 1.x',
      '/capture',
      json,
      { api_key: token, event: 'sign up', distinct_id: 'elixir-1', properties: { plan: 'pro' } },
      [{ event: 'sign up', distinctId: 'elixir-1', timestamp: receivedAt, properties: { plan: 'pro' } }],
    ),
    post(
      'posthog-rs, single',
      '/i/v0/e/',
      json,
      { api_key: token, uuid: uuid(30), event: 'sign up', $distinct_id: 'rs-single', properties: { plan: 'pro' } },
      [
        {
          event: 'sign up',
          distinctId: 'rs-single',
          timestamp: receivedAt,
          uuid: uuid(30),
          properties: { plan: 'pro' },
        },
      ],
    ),
    post(
      'posthog-java 1.x',
      '/batch',
      json,
      {
        api_key: token,
        batch: [
          {
            uuid: uuid(31),
            timestamp: '2025-07-01T10:59:50.123456Z',
            distinct_id: 'java-1',
            event: 'sign up',
            properties: { plan: 'pro' },
          },
        ],
      },
      [
        {
          event: 'sign up',
          distinctId: 'java-1',
          timestamp: '2025-07-01T10:59:50.123Z',
          uuid: uuid(31),
          properties: { plan: 'pro' },
        },
      ],
    ),
  ]
}
