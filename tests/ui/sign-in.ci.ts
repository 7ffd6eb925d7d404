// People sign in to the screens of a real front, with Chromium.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { launchChromium, noChromium } from '../sdk/browser/browser.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { openPage, type SeenPage, sizes, themes } from './support/seen-page.ts'

const skip = noChromium()
const password = 'correct horse battery'

/** A link that makes a new user. */
async function invite(front: Pick<RunningFront, 'api'>, role: 'viewer' | 'admin'): Promise<string> {
  const { link } = (await front.api('POST', '/api/invitations/', { role })) as { link: string }
  return link
}

describe('signing in', { skip }, () => {
  let browser: Browser
  before(async () => {
    browser = await launchChromium()
  })
  after(() => browser?.close())
  const front = startedForTests(startFront, skip)
  const desktop = { viewport: sizes[0], colorScheme: 'light' } as const

  async function openSignedIn(name: string, role: 'viewer' | 'admin', options: BrowserContextOptions = desktop) {
    const seen = await openPage(browser, await invite(front, role), options)
    await seen.page.getByRole('textbox', { name: 'Name' }).fill(name)
    await seen.page.getByLabel('E-mail').fill(`${name}@example.com`)
    await seen.page.getByLabel('Password', { exact: true }).fill(password)
    await seen.page.keyboard.press('Enter')
    await seen.page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    return seen
  }

  for (const colorScheme of themes)
    for (const viewport of sizes) {
      it(`every page is accessible at ${viewport.width} px in the ${colorScheme} theme`, async () => {
        const seen = await openPage(browser, await invite(front, 'admin'), { viewport, colorScheme })
        const { page } = seen
        await seen.check('welcome')
        assert.equal(new URL(page.url()).hash, '', 'the token stays in the address')
        const name = `ada-${viewport.width}-${colorScheme}`
        await page.getByRole('textbox', { name: 'Name' }).fill(name)
        await page.getByLabel('E-mail').fill(`${name}@example.com`)
        await page.getByLabel('Password', { exact: true }).fill(password)
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
        await seen.check('home')
        await page.keyboard.press('Control+k')
        await page.getByRole('dialog').waitFor()
        await seen.check('palette')
        await page.keyboard.type('users')
        await page.keyboard.press('Enter')
        await page.getByText(`${name}@example.com`).waitFor()
        await seen.check('users')
        await page.getByRole('button', { name: 'Invite somebody' }).click()
        await page.getByRole('dialog').waitFor()
        await seen.check('invite')
        await page.getByRole('button', { name: 'Make a link' }).click()
        await page.getByRole('button', { name: 'Copy the link' }).waitFor()
        await seen.check('link')
        await page.getByRole('button', { name: 'Done' }).click()
        await page.getByRole('link', { name: 'Your account' }).click()
        await page.getByText('This browser').waitFor()
        await seen.check('account')
        await page.getByRole('button', { name: 'Your account' }).click()
        await page.getByRole('menuitem', { name: 'Sign out' }).click()
        await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
        await seen.check('sign-in')
        seen.assertQuiet()
        await seen.close()
      })
    }

  it('leads back to the screen that was asked for, and works without a pointer', async () => {
    const first = await openSignedIn('grace', 'admin')
    await first.close()
    const { page, ...seen } = await openPage(browser, `${front.url}/ui/users`, desktop)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal(await page.evaluate('document.activeElement.name'), 'email')
    await page.keyboard.type('GRACE@example.com')
    await page.keyboard.press('Tab')
    await page.keyboard.type('wrong horse battery')
    await page.keyboard.press('Enter')
    await page.getByText('The e-mail address or the password is wrong.').waitFor()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/ui/users')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Users', 'reading begins at the heading')
    await seen.close()
  })

  it('a viewer sees no users, and continues with unsaved input after an admin has ended the session', async () => {
    const admin = await openSignedIn('lin', 'admin')
    const viewer = await openSignedIn('mae', 'viewer')
    assert.equal(await viewer.page.getByRole('link', { name: 'Users' }).count(), 0)
    await viewer.page.goto(`${front.url}/ui/users`)
    await viewer.page.getByText('Users: not allowed').waitFor()
    await viewer.page.goto(`${front.url}/ui/me`)
    await viewer.page.getByRole('textbox', { name: 'Name' }).fill('Mae Jemison')

    await admin.page.getByRole('link', { name: 'Users' }).click()
    await admin.page.getByRole('button', { name: 'Actions for mae' }).click()
    await admin.page.getByRole('menuitem', { name: 'Sign out everywhere' }).click()
    await admin.page.getByText('mae is signed out everywhere.').waitFor()

    await viewer.page.getByRole('button', { name: 'Save the name' }).click()
    const over = viewer.page.getByRole('dialog', { name: 'Your session is over' })
    await over.getByLabel('Password', { exact: true }).fill(password)
    await over.getByRole('button', { name: 'Sign in' }).click()
    await over.waitFor({ state: 'detached' })
    assert.equal(
      await viewer.page.getByRole('textbox', { name: 'Name' }).inputValue(),
      'Mae Jemison',
      'the unsaved input is lost',
    )
    await viewer.page.getByRole('button', { name: 'Save the name' }).click()
    await viewer.page.getByText('Your name is changed.').waitFor()
    await admin.close()
    await viewer.close()
  })

  it('inviting somebody takes three clicks, and their link works once', async () => {
    const admin = await openSignedIn('katherine', 'admin')
    const { page } = admin
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('button', { name: 'Invite somebody' }).click()
    await page.getByRole('button', { name: 'Make a link' }).click()
    const link = await page.getByLabel('Link', { exact: true }).inputValue()
    const invited = await openPage(browser, link, desktop)
    await invited.page.getByText('You will be a viewer.').waitFor()
    await invited.page.getByLabel('E-mail').fill('dorothy@example.com')
    await invited.page.getByLabel('Password', { exact: true }).fill(password)
    await invited.page.getByRole('button', { name: 'Sign in' }).click()
    await invited.page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    const again = await openPage(browser, link, desktop)
    await again.page.getByText('This link has been used.').waitFor()
    for (const seen of [admin, invited, again]) await seen.close()
  })

  it('the last admin cannot lower themselves, and the role on the screen goes back', async t => {
    const alone = await startFront()
    t.after(() => alone.close())
    const { page, close }: SeenPage = await openPage(browser, await invite(alone, 'admin'), desktop)
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('button', { name: /^Admin/ }).click()
    await page.getByRole('option', { name: 'Viewer' }).click()
    await page.getByText('This is the last admin').waitFor()
    await page.getByRole('button', { name: /^Admin/ }).waitFor()
    await close()
  })

  it('the screens recover without a reload after the server was unreachable', async t => {
    const alone = await startFront()
    t.after(() => alone.close())
    const { page, close }: SeenPage = await openPage(browser, await invite(alone, 'admin'), desktop)
    t.after(close)
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByText('This browser').waitFor()
    await page.route('**/api/**', route => route.abort())
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada')
    await page.getByRole('button', { name: 'Save the name' }).click()
    await page.getByText('The server does not answer; trying again.').waitFor()
    await page.unroute('**/api/**')
    await page.getByText('The server does not answer; trying again.').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Save the name' }).click()
    await page.getByText('Your name is changed.').waitFor()
  })
})
