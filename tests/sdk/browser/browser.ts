// Debian's Chromium as a visitor's browser, with a record of a page's requests and console output.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page, type Response } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/**
 * For the `skip` option of a suite: false if Chromium is installed, else why the suite is skipped.
 * @throws under CI, where a skip is a failure.
 */
export function noChromium(): string | false {
  if (existsSync(executablePath)) return false
  const reason = `no Chromium at ${executablePath}`
  if (process.env.CI) throw new Error(reason)
  return reason
}

/** posthog-js sends nothing for user agents that call themselves headless. */
const userAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    chromiumSandbox: false,
    args: [
      // Set for the process: an emulated one would be lost while a page is being left.
      `--user-agent=${userAgent}`,
      // Else a page detects the automation, and posthog-js sends nothing.
      '--disable-blink-features=AutomationControlled',
    ],
  })
}

export interface Asked {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly type: string
  /** Null before the answer, and forever if the page was left before it. */
  status: number | null
}

export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** Requests in order, without preflights, which the browser itself makes. */
  readonly asked: readonly Asked[]
  /** Errors and warnings on the console, uncaught errors, and failed requests. */
  readonly complaints: readonly string[]
  /** Paths, without query, of the requests to `origin`. */
  pathsAskedOf(origin: string): string[]
  /** Requires no 3xx, 4xx or 5xx answers and no complaints. */
  assertQuiet(): void
  close(): Promise<void>
}

/** Opens a page as a new visitor: nothing stored, nothing cached. */
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
    // Requests that a page sends while it is left continue without it and have no reader for the answer. The store
    // shows whether they arrived.
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
