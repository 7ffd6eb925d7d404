// What every scenario with a page needs: an instance with flags, a site of another origin and a browser; ways to open a
// page, query it, and read back stored data.

import assert from 'node:assert/strict'
import type { Browser } from 'playwright-core'
import { eventually } from '../../support/eventually.ts'
import { testProjectKey } from '../../support/pennon.ts'
import { type Acceptance, type StoredEvent, startAcceptance, storedEvents } from '../acceptance.ts'
import { launchChromium, type Visit, visit } from './browser.ts'
import { type Shop, snippet, startShop } from './shop.ts'

export interface Site {
  readonly acceptance: Acceptance
  readonly shop: Shop
  readonly browser: Browser
  /**
   * A page with the snippet, and its visitor; the flags are loaded when this resolves.
   * @param script where the page loads the library from.
   * @param options of `posthog.init`, as JavaScript.
   */
  open(script: string, options?: string): Promise<Visit>
  openHead(head: string, options?: { untilFlags?: boolean; hash?: string }): Promise<Visit>
  leave(visitor: Visit): Promise<void>
  /** The stored data of a distinct id, once it includes these events. */
  storedWith(distinctId: string, ...events: readonly string[]): Promise<StoredEvent[]>
  /** Requires that nothing was refused, redirected or missing, for the page and for the server. */
  assertQuiet(visitor: Visit): void
  close(): Promise<void>
}

export async function startSite(): Promise<Site> {
  const acceptance = await startAcceptance()
  const shop = await startShop(acceptance.pennon.url)
  const browser = await launchChromium()
  const site: Site = {
    acceptance,
    shop,
    browser,
    open: (script, options = '') =>
      site.openHead(snippet(script, testProjectKey, `{ api_host: '${acceptance.proxy.url}', ${options} }`)),
    openHead: async (head, { untilFlags = true, hash = '' } = {}) => {
      acceptance.proxy.take()
      const visitor = await visit(browser)
      await visitor.page.goto(shop.page(head) + hash)
      if (untilFlags) await visitor.page.waitForFunction('shown.flagsLoaded > 0')
      return visitor
    },
    leave: async visitor => {
      await visitor.page.goto(`${shop.url}/bye`)
    },
    storedWith: async (distinctId, ...events) => {
      let stored: StoredEvent[] = []
      await eventually(
        async () => {
          stored = await storedEvents(acceptance.pennon, distinctId)
          return events.every(event => stored.some(one => one.event === event))
        },
        { what: `${events} of ${distinctId}` },
      )
      return stored
    },
    assertQuiet: visitor => {
      visitor.assertQuiet()
      assert.deepEqual(
        acceptance.proxy.exchanges.filter(({ status }) => status !== 200 && status !== 204),
        [],
      )
    },
    close: async () => {
      await browser.close()
      await shop.close()
      await acceptance.close()
    },
  }
  return site
}

/** Calls the library in the page and returns the result. */
export function ask<T>(visitor: Visit, expression: string): Promise<T> {
  return visitor.page.evaluate(expression) as Promise<T>
}

/** Waits until a call of the library returns this value, since the library decides when it requests flags. */
export async function shows(visitor: Visit, expression: string, expected: unknown): Promise<void> {
  await eventually(async () => JSON.stringify(await ask(visitor, expression)) === JSON.stringify(expected), {
    what: `${expression} to be ${JSON.stringify(expected)}`,
  })
}

/** For `ask` and `shows`; null when the page has no such flag. */
export function flagOf(key: string): string {
  return `shown.values()[${JSON.stringify(key)}] ?? null`
}

export function only(events: readonly StoredEvent[], name: string): StoredEvent {
  const [first, ...others] = events.filter(({ event }) => event === name)
  assert.ok(first, name)
  assert.equal(others.length, 0, `${name} is stored more than once`)
  return first
}
