// Requests that people and scripts send without a library, with the key in every place that is allowed.
// Source: docs/wire/clients.md 1 rule 16, 4, 5.2.

import { asWritten, formType, happenedAt, json, post, receivedAt, type SdkRequest } from './sdk-request.ts'

export function directCalls(token: string): SdkRequest[] {
  const single = (distinctId: string) => ({
    event: 'sign up',
    distinct_id: distinctId,
    properties: { plan: 'pro' },
    timestamp: happenedAt,
  })
  const stored = (distinctId: string) => [
    { event: 'sign up', distinctId, timestamp: asWritten, properties: { plan: 'pro' } },
  ]
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  return [
    post('curl, one event', '/capture/', json, { api_key: token, ...single('curl') }, stored('curl')),
    post('curl, /track with a base64 body', '/track/', {}, base64({ token, ...single('track') }), stored('track')),
    post('curl, /engage', '/engage/', json, { token, distinct_id: 'engage', $set: { plan: 'pro' } }, [
      { event: '$identify', distinctId: 'engage', timestamp: receivedAt, properties: {}, set: { plan: 'pro' } },
    ]),
    post(
      'a key in the header',
      '/batch/',
      { ...json, 'x-posthog-project-api-key': token },
      { batch: [single('key-header')] },
      stored('key-header'),
    ),
    post(
      'a key in the query',
      `/e/?token=${encodeURIComponent(token)}`,
      json,
      [single('key-query')],
      stored('key-query'),
    ),
    post(
      'a key in the form',
      '/e/',
      { 'content-type': formType },
      new URLSearchParams({ data: base64([single('key-form')]), api_key: token }).toString(),
      stored('key-form'),
    ),
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
