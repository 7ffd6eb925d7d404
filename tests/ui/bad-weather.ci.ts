// The screens while the server does not answer, and after it has been updated.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { launchChromium, noChromium } from '../sdk/browser/browser.ts'
import { startFront } from '../support/front.ts'
import { aPassword } from '../support/people.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { openPage, sizes } from './support/seen-page.ts'

const skip = noChromium()
const options = { viewport: sizes[0], colorScheme: 'light' } as const

describe('the screens', { skip }, () => {
  const front = startedForTests(startFront, skip)
  let browser: Browser
  before(async () => {
    browser = await launchChromium()
  })
  after(() => browser?.close())

  async function openSignedIn(name: string): Promise<Page> {
    const { link } = (await front.api('POST', '/api/invitations/', { role: 'admin' })) as { link: string }
    const { page } = await openPage(browser, link, options)
    await page.getByLabel('E-mail').fill(`${name}@example.com`)
    await page.getByLabel('Password', { exact: true }).fill(aPassword)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    return page
  }

  it('appear by themselves when the server answers, though it did not at first', async () => {
    const page = await openSignedIn('ada')
    await page.route('**/api/**', route => route.abort())
    await page.goto(`${front.url}/ui/me`)
    await page.getByText('This screen could not be loaded').waitFor()
    await page.unroute('**/api/**')
    await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
    await page.context().close()
  })

  it('say that the server does not answer where a screen’s files cannot be loaded, and load them later', async () => {
    const page = await openSignedIn('grace')
    await page.route('**/*', route => route.abort())
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByText('The server does not answer.').first().waitFor()
    await page.unroute('**/*')
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    await page.context().close()
  })

  it('reload when the files of their build no longer exist', async () => {
    const page = await openSignedIn('lin')
    let refusedCount = 0
    await page.route('**/ui/assets/users-*', route => {
      refusedCount++
      return refusedCount === 1 ? route.fulfill({ status: 404, body: '{}' }) : route.continue()
    })
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByText('lin@example.com').first().waitFor()
    assert.ok(refusedCount > 1)
    await page.context().close()
  })

  it('continue reading at the heading of a screen that was chosen from the rail or the palette', async () => {
    const page = await openSignedIn('mae')
    const focused = () => page.evaluate('document.activeElement.textContent')
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByText('mae@example.com').first().waitFor()
    assert.equal(await focused(), 'Users')
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('account')
    await page.keyboard.press('Enter')
    await page.getByText('This browser').waitFor()
    assert.equal(await focused(), 'Your account')
    await page.context().close()
  })

  it('reload in every tab when another person signs in', async () => {
    const page = await openSignedIn('katherine')
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByText('katherine@example.com').waitFor()
    const { link } = (await front.api('POST', '/api/invitations/', { role: 'viewer' })) as { link: string }
    const other = await page.context().newPage()
    await other.goto(link)
    await other.getByLabel('E-mail').fill('dorothy@example.com')
    await other.getByLabel('Password', { exact: true }).fill(aPassword)
    await other.keyboard.press('Enter')
    await other.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    await page.bringToFront()
    await page.evaluate('dispatchEvent(new Event("visibilitychange"))')
    await page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByText('dorothy@example.com').waitFor()
    await page.context().close()
  })
})
