import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { launchChromium, noChromium } from '../sdk/browser/browser.ts'
import { eventually } from '../support/eventually.ts'
import { buildWithWorkbench, serveScreens } from './support/built-screens.ts'
import { openPage, type SeenPage, sizes, themes } from './support/seen-page.ts'

describe('the workbench', { skip: noChromium() }, () => {
  let browser: Browser
  let url: string
  const ends: (() => unknown)[] = []
  before(async () => {
    const suite = { after: (end: () => unknown) => void ends.push(end) }
    // The address of another server that has the workbench may be given.
    const base = process.env.UI_URL ?? (await serveScreens(suite, await buildWithWorkbench(suite)))
    url = `${base}/ui/workbench`
    browser = await launchChromium()
  })
  after(async () => {
    await browser?.close()
    for (const end of ends) await end()
  })

  for (const colorScheme of themes) {
    for (const viewport of sizes) {
      it(`has no accessibility violation at ${viewport.width} px in the ${colorScheme} theme`, async () => {
        const seen = await openPage(browser, url, { viewport, colorScheme })
        await seen.check('whole')
        // What opens over the page is the same in every size but the smallest, and in the other theme but for its colours.
        const isChecked = colorScheme === (viewport === sizes[0] ? 'light' : 'dark') && viewport !== sizes[1]
        for (const [name, open] of isChecked ? Object.entries(overlays) : []) {
          await open(seen.page)
          await seen.check(name, name === 'toast' ? undefined : 'main')
          await closeOverlays(seen)
        }
        seen.assertQuiet()
        await seen.close()
      })
    }
  }

  /** Runs a walk, after which nothing may have been reported. */
  async function walk(take: (page: Page) => Promise<void>): Promise<void> {
    const seen = await openPage(browser, url, { viewport: sizes[0], colorScheme: 'light' })
    await take(seen.page)
    seen.assertQuiet()
    await seen.close()
  }

  it('has a grid of 10,000 rows for the keyboard, and renders few of them', () =>
    walk(async page => {
      const grid = page.getByRole('grid', { name: 'Flags', exact: true })
      await grid.getByRole('link', { name: 'new-checkout-1', exact: true }).focus()
      await page.keyboard.press('j')
      assert.equal(await nameOfFocused(page), 'new-checkout-2')
      await page.keyboard.press('Control+End')
      await page.keyboard.press('Home')
      await page.keyboard.press('ArrowRight')
      assert.equal(await nameOfFocused(page), 'new-checkout-10000')
      assert.ok((await grid.getByRole('row').count()) < 60)
      await page.keyboard.press('Control+Home')
      await page.keyboard.press('x')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Shift+X')
      assert.equal(await grid.getByRole('row', { selected: true }).count(), 3)
      assert.equal(await grid.locator('[role=row] [tabindex="0"]').count(), 1, 'one cell is in the tab order')
    }))

  it('has a grid whose rows are links as a whole', () =>
    walk(async page => {
      const grid = page.getByRole('grid', { name: 'Flags', exact: true })
      await grid.getByRole('gridcell', { name: 'Served' }).first().click()
      assert.equal(new URL(page.url()).hash, '#flag-2')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      assert.equal(new URL(page.url()).hash, '#flag-3')
    }))

  it('has a grid whose cells are switched, opened and resized by keys', () =>
    walk(async page => {
      const grid = page.getByRole('grid', { name: 'Flags', exact: true })
      const toggle = grid.getByRole('switch', { name: 'new-checkout-1 is on', exact: true })
      await grid.getByRole('link', { name: 'new-checkout-1', exact: true }).focus()
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('Space')
      assert.ok(await toggle.isChecked())
      await page.keyboard.press('ContextMenu')
      await page.getByRole('menu', { name: 'new-checkout-1' }).waitFor()
      await page.keyboard.press('Escape')
      await eventually(async () => (await nameOfFocused(page)) === 'new-checkout-1 is on')
      await page.keyboard.press('ArrowUp')
      const head = grid.getByRole('columnheader', { name: 'On', exact: true })
      const widthPx = (await head.boundingBox())!.width
      await page.keyboard.press('Shift+ArrowRight')
      await eventually(async () => (await head.boundingBox())!.width === widthPx + 16, {
        what: 'the column to be wider',
      })
    }))

  it('has numbers that are changed by buttons, keys and the slider', () =>
    walk(async page => {
      const field = page.getByRole('textbox', { name: 'Rollout' }).first()
      await page.getByRole('button', { name: 'Increase Rollout' }).first().click()
      await field.focus()
      for (let press = 0; press < 3; press++) await page.keyboard.press('ArrowUp')
      assert.equal(await field.inputValue(), '25.04')
      await page.getByRole('slider', { name: 'Rollout' }).first().focus()
      await page.keyboard.press('End')
      assert.equal(await field.inputValue(), '100')
    }))

  it('deletes only after the name was typed, and never by Enter', () =>
    walk(async page => {
      await press(page, 'Open a deletion')
      const dialog = page.getByRole('alertdialog')
      const button = dialog.getByRole('button', { name: 'Delete new-checkout' })
      // Playwright does not click what is disabled.
      await button.click({ force: true })
      await page.getByRole('tooltip', { name: 'Type the name first' }).waitFor()
      await dialog.getByRole('textbox', { name: 'Name' }).fill('new-checkout')
      await page.keyboard.press('Enter')
      assert.ok(await dialog.isVisible())
      await button.click()
      await dialog.filter({ hasText: 'new-checkout is deleted' }).waitFor()
      await eventually(async () => (await nameOfFocused(page)) === 'Open a deletion')
    }))

  it('shows what can be undone for 8 s, and as long as the pointer is on it', () =>
    walk(async page => {
      await page.clock.install()
      await press(page, 'Show a toast', 'alertdialog')
      const toast = page.getByRole('alertdialog')
      await toast.hover()
      await page.clock.runFor(20_000)
      assert.equal(await toast.count(), 1)
      await page.mouse.move(10, 10)
      await page.clock.runFor(9_000)
      assert.equal(await toast.count(), 0)
    }))

  it('tries again by itself when the time has come, and says when', () =>
    walk(async page => {
      await page.clock.install()
      await press(page, 'Start a countdown')
      await page.getByText('Tries again in 5 s.').waitFor()
      await page.clock.runFor(4_000)
      await page.getByText('Tries again in 1 s.').waitFor()
      await page.clock.runFor(1_000)
      await page.getByText('Tried again').waitFor()
    }))

  it('copies by hand where the browser has no clipboard', () =>
    walk(async page => {
      await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }))
      await press(page, 'Copy the link', 'dialog')
      const area = page.getByRole('textbox', { name: 'Text to copy' })
      assert.equal(await area.inputValue(), 'https://example.com/')
      assert.equal(await page.evaluate('getSelection().toString()'), 'https://example.com/')
    }))

  it('keeps the chosen theme', () =>
    walk(async page => {
      const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      assert.equal(await background(), 'rgb(255, 255, 255)')
      await page.getByRole('radio', { name: 'Dark' }).check()
      assert.equal(await background(), 'rgb(19, 22, 28)')
      await page.reload()
      await page.getByRole('radio', { name: 'Dark', checked: true }).waitFor()
      assert.equal(await background(), 'rgb(19, 22, 28)')
    }))
})

/** What opens over the page, and how. */
const overlays: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  // Scrolling closes it, which the first of these steps may cause.
  tooltip: page =>
    eventually(async () => {
      await page.getByRole('button', { name: 'Turn off', exact: true }).focus()
      await page.keyboard.press('Tab')
      return page.getByRole('tooltip', { name: 'Two conditions are not complete' }).isVisible()
    }),
  dialog: page => press(page, 'Open a dialog'),
  'wide-dialog': page => press(page, 'Open a wide dialog'),
  deletion: page => press(page, 'Open a deletion'),
  failure: async page => {
    await press(page, 'Open a confirmation')
    await press(page, 'Turn off for 4,210 persons')
    await page.getByText('version 14 is served by now.').last().waitFor()
  },
  menu: page => press(page, 'Open a menu', 'menu'),
  'menu-here': page => press(page, 'Open a menu here', 'menu'),
  popover: page => press(page, 'Open a popover'),
  select: async page => {
    await page.getByRole('button', { name: 'Operator' }).first().click()
    await page.getByRole('listbox').waitFor()
  },
  'combo-box': async page => {
    await page.getByRole('combobox', { name: 'Property of persons' }).click()
    await page.getByRole('listbox').waitFor()
  },
  toast: async page => {
    await press(page, 'Show a toast', 'alertdialog')
    await press(page, 'Show a failure')
    await press(page, 'Show a long toast')
    await eventually(async () => (await page.getByRole('alertdialog').count()) === 3)
  },
}

async function press(page: Page, name: string, opens: 'dialog' | 'menu' | 'alertdialog' | null = null): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  if (opens !== null) await page.getByRole(opens).first().waitFor()
}

function nameOfFocused(page: Page): Promise<unknown> {
  return page.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent')
}

async function closeOverlays({ page }: SeenPage): Promise<void> {
  await page.keyboard.press('Escape')
  const toasts = page.getByRole('region', { name: /Messages|notification/i }).getByRole('button', { name: 'Close' })
  while ((await toasts.count()) > 0) await toasts.first().click()
  await eventually(async () => (await page.locator('[role=dialog], [role=alertdialog], [role=menu]').count()) === 0)
  assert.equal(await page.locator('[role=listbox]').count(), 0)
}
