// Debian's Chromium as a visitor's browser, and everything that a page asked and said in it.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page, type Response } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/**
 * For the `skip` of a suite: false when Chromium is here, else why nothing runs.
 * @throws under CI, where a skip is a failure.
 */
export function noChromium(): string | false {
  if (existsSync(executablePath)) return false
  const why = `no Chromium at ${executablePath}`
  if (process.env.CI) throw new Error(why)
  return why
}

/** posthog-js sends nothing for user agents that call themselves headless. */
const userAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    chromiumSandbox: false,
    args: [
      // It is set for the process: one that is emulated for a page is gone again while the page is left.
      `--user-agent=${userAgent}`,
      // Else a page sees that nobody sits here, and posthog-js sends nothing.
      '--disable-blink-features=AutomationControlled',
    ],
  })
}

export interface Asked {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly type: string
  /** Null before the answer, and for good when the page was left before it. */
  status: number | null
}

export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** In the order they were made, preflights without: the browser makes those itself. */
  readonly asked: readonly Asked[]
  /** Errors and warnings of the console, errors nobody caught, requests that failed. */
  readonly complaints: readonly string[]
  /** Paths, without query, of the requests to `origin`. */
  pathsAskedOf(origin: string): string[]
  /** No 3xx, 4xx or 5xx, and not one complaint. */
  assertQuiet(): void
  close(): Promise<void>
}

/** A visitor of their own: nothing stored, nothing cached. */
export async function visit(browser: Browser): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 } })
  const page = await context.newPage()
  const asked: Asked[] = []
  const complaints: string[] = []
  const byRequest = new Map<unknown, Asked>()
  page.on('request', request => {
    const { pathname, search } = new URL(request.url())
    const one = {
      method: request.method(),
      url: request.url(),
      path: pathname + search,
      type: request.resourceType(),
      status: null,
    }
    byRequest.set(request, one)
    asked.push(one)
  })
  page.on('response', (response: Response) => {
    const one = byRequest.get(response.request())
    if (one !== undefined) one.status = response.status()
  })
  page.on('requestfailed', request => {
    // What a page sends as it goes goes on without it; its answer finds nobody. The store says whether it arrived.
    if (request.failure()?.errorText === 'net::ERR_ABORTED') return
    complaints.push(`${request.method()} ${request.url()} failed: ${request.failure()?.errorText}`)
  })
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', error => void complaints.push(`uncaught: ${error.message}`))
  return {
    page,
    context,
    asked,
    complaints,
    pathsAskedOf: origin => asked.filter(({ url }) => url.startsWith(origin)).map(({ url }) => new URL(url).pathname),
    assertQuiet: () => {
      assert.deepEqual(complaints, [])
      assert.deepEqual(
        asked.filter(({ status }) => status !== null && (status < 200 || status >= 300)),
        [],
      )
    },
    close: () => context.close(),
  }
}
