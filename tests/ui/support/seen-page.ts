// A page as people see it: in a window of some size and one of the themes, checked by axe-core, with pictures of it.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

export const themes = ['light', 'dark'] as const
export type Theme = (typeof themes)[number]
/** The widths that every screen is made for. */
export const sizes = [
  { width: 1280, height: 800 },
  { width: 768, height: 1024 },
  { width: 360, height: 740 },
] as const

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const axeOptions: RunOptions = {
  runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
  // Off unless it is named, although WCAG 2.2 AA has it.
  rules: { 'target-size': { enabled: true } },
  resultTypes: ['violations'],
}

/**
 * Rules of best practice that fail on any page while something is open, by its selector. While a combo box is open, React
 * Aria hides all but the box and its list from screen readers, so the heading and the landmarks too. A tooltip is outside
 * of the landmarks, and is read as the description of its element.
 */
const rulesWithout: Readonly<Record<string, readonly string[]>> = {
  '[role=combobox][aria-expanded=true]': ['page-has-heading-one', 'region'],
  '[role=tooltip]': ['region'],
}

export interface SeenPage {
  readonly page: Page
  /**
   * Requires that axe-core finds nothing, and stores a picture under this name.
   * @param except a selector of parts that were checked before and are inert now.
   */
  check(name: string, except?: string): Promise<void>
  /** Requires that nothing was reported on the console: no error, no violation of the policy, no failed request. */
  assertQuiet(): void
  close(): Promise<void>
}

/** @param url of any server that has the screens. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions): Promise<SeenPage> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  // Scripts of the debugger are not subject to the page's policy.
  await context.addInitScript({ path: axePath })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    // The first request asks for the session, and gets 401 before a sign-in.
    if (!message.text().includes('status of 401')) complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', error => void complaints.push(`uncaught: ${error.message}`))
  page.on('requestfailed', request => void complaints.push(`${request.url()}: ${request.failure()?.errorText}`))
  await page.goto(url)
  await page.getByRole('heading', { level: 1 }).waitFor()
  const view = `${options.viewport?.width}-${options.colorScheme}`
  return {
    page,
    check: async (name, except) => {
      await takePicture(page, `${name}-${view}`)
      assert.deepEqual(await findViolations(page, except), [], `${name}, ${view}`)
      assert.equal(await overflowsSideways(page), false, `${name}, ${view} is scrolled sideways`)
    },
    assertQuiet: () => assert.deepEqual(complaints, []),
    close: () => context.close(),
  }
}

/** One line for each violation and element. */
export async function findViolations(page: Page, except?: string): Promise<string[]> {
  const { violations } = await page.evaluate(
    ([except, options]) => {
      const { axe } = globalThis as unknown as {
        axe: { run(context: object, options: RunOptions): Promise<AxeResults> }
      }
      return axe.run({ include: [['html']], exclude: except === undefined ? [] : [[except]] }, options)
    },
    [except, axeOptions] as const,
  )
  const ignored: string[] = []
  for (const [selector, rules] of Object.entries(rulesWithout))
    if ((await page.locator(selector).count()) > 0) ignored.push(...rules)
  const found = violations.filter(({ id }) => !ignored.includes(id))
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  )
}

function overflowsSideways(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')
}

/** Into the folder UI_SCREENSHOTS, if it is set: somebody looks at them, no test compares them. */
async function takePicture(page: Page, name: string): Promise<void> {
  const folder = process.env.UI_SCREENSHOTS
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: name.startsWith('whole') })
}
