// How the newest posthog-node reacts to rejections, and where it sends requests with a separate path: nothing is lost
// or duplicated. Source: docs/wire/clients.md 8.1, 13 rows 14 and 18.

import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { PostHog } from 'posthog-node'
import { testProjectKey } from '../support/pennon.ts'
import { type Acceptance, storedEvents } from './acceptance.ts'

/** Registers the suite; `acceptanceOf` is asked when it runs. */
export function describeRefused(acceptanceOf: () => Acceptance): void {
  describe('posthog-node when the server rejects requests', () => {
    let acceptance: Acceptance
    before(() => {
      acceptance = acceptanceOf()
      acceptance.proxy.take()
    })

    // Another client may still poll its definitions.
    const passed = () =>
      acceptance.proxy
        .take()
        .filter(({ path }) => !path.startsWith('/api/'))
        .map(({ path, status }) => `${path} ${status}`)
    const clientWith = (options: object) =>
      new PostHog(testProjectKey, { host: acceptance.proxy.url, fetchRetryDelay: 50, ...options })

    it('halves a batch that is too large until it is accepted, with each event stored once', async () => {
      const refusal = { status: 413, body: '{"type":"validation_error","code":"payload_too_large"}' }
      acceptance.proxy.answerNext('/batch', [refusal, refusal])
      const client = clientWith({ flushAt: 4 })
      for (let n = 0; n < 4; n++)
        client.capture({ distinctId: 'halved', event: 'large', properties: { n, padding: 'x'.repeat(10_000) } })
      await client.shutdown()
      assert.deepEqual(passed(), [...Array(2).fill('/batch/ 413'), ...Array(4).fill('/batch/ 200')])
      const stored = await storedEvents(acceptance.pennon, 'halved')
      assert.deepEqual(stored.map(({ properties }) => properties.n).toSorted(), [0, 1, 2, 3])
    })

    it('sends AI events to their separate path, and they are stored', async () => {
      const client = clientWith({})
      client.captureAi({
        distinctId: 'asker',
        event: '$ai_generation',
        properties: { $ai_model: 'm', $ai_input_tokens: 3 },
      })
      await client.shutdown()
      assert.deepEqual(passed(), ['/i/v0/ai/batch/ 200'])
      const [generation, ...more] = await storedEvents(acceptance.pennon, 'asker')
      assert.deepEqual(more, [])
      assert.deepEqual(
        [generation!.event, generation!.properties.$ai_model, generation!.lane],
        ['$ai_generation', 'm', 'ai'],
      )
    })
  })
}
