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
    await viewer.page.getByText('Only admins manage users.').waitFor()
    await viewer.page.goto(`${front.url}/ui/me`)
    await viewer.page.getByRole('textbox', { name: 'Name' }).fill('Mae Jemison')

    await admin.page.getByRole('link', { name: 'Users' }).click()
    await admin.page.getByRole('button', { name: 'Actions for mae' }).click()
    await admin.page.getByRole('menuitem', { name: 'Sign out everywhere' }).click()
    await admin.page.getByRole('alertdialog').getByRole('button', { name: 'Sign out mae' }).click()
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

  it('another link that is pasted into the same tab is followed, and taken out of the address', async () => {
    const { page, ...seen } = await openPage(browser, await invite(front, 'viewer'), desktop)
    await page.getByText('You will be a viewer.').waitFor()
    await page.getByRole('textbox', { name: 'Name' }).fill('Typed for the first')
    await page.goto(await invite(front, 'admin'))
    await page.getByText('You will be an admin.').waitFor()
    assert.equal(await page.getByRole('textbox', { name: 'Name' }).inputValue(), '')
    assert.equal(new URL(page.url()).hash, '', 'the token stays in the address')
    await page.goto(`${front.url}/ui/welcome#${'a'.repeat(43)}`)
    await page.getByText('This link cannot be used').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0)
    await seen.close()
  })

  it('a link that could not be checked is not called unusable, and can be tried again', async () => {
    const link = await invite(front, 'viewer')
    const { page, ...seen } = await openPage(browser, `${front.url}/ui/welcome`, desktop)
    await page.route('**/link/check/', route => route.fulfill({ status: 500, body: '' }))
    await page.goto(link)
    await page.getByText('The link could not be checked').waitFor()
    await page.unroute('**/link/check/')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('You will be a viewer.').waitFor()
    await seen.close()
  })

  it('Enter sends no form that cannot be sent', async () => {
    const { page, ...seen } = await openSignedIn('hedy', 'viewer')
    const sent: string[] = []
    page.on('request', request => void (request.method() === 'PATCH' && sent.push(request.url())))
    await page.getByRole('link', { name: 'Your account' }).click()
    const name = page.getByRole('textbox', { name: 'Name' })
    await name.focus()
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.name'), 'name')
    assert.equal(await page.getByRole('tooltip').count(), 0)
    await page.route('**/api/session/user/', async route => {
      await page.keyboard.press('Enter')
      await route.continue()
    })
    await name.fill('Hedy')
    await page.keyboard.press('Enter')
    await page.getByText('Your name is changed.').waitFor()
    assert.equal(sent.length, 1)
    await seen.close()
  })

  it('a refused value shows the reason at its field, which gets the focus', async () => {
    const { page, ...seen } = await openSignedIn('emmy', 'admin')
    await page.getByRole('link', { name: 'Your account' }).click()
    const present = page.getByLabel('Present password', { exact: true })
    await present.fill('wrong horse battery')
    await page.getByLabel('New password', { exact: true }).fill('short')
    await page.keyboard.press('Enter')
    await page.getByText('A password has 12 to 200 characters.').waitFor()
    assert.equal(await page.evaluate('document.activeElement.autocomplete'), 'new-password')
    await page.getByLabel('New password', { exact: true }).fill('another horse battery')
    await page.keyboard.press('Enter')
    await page.getByText('The present password is wrong.').waitFor()
    assert.equal(await page.evaluate('document.activeElement.autocomplete'), 'current-password')
    assert.equal(await page.getByRole('alert').count(), 0, 'the error is shown twice')
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('button', { name: 'Invite somebody' }).click()
    await page.keyboard.type('emmy@example.com')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('has this e-mail address.').waitFor()
    await page.keyboard.press('End')
    await page.keyboard.type('.org')
    await page.keyboard.press('Enter')
    await page.getByText(/It works once, until .* UTC, and/).waitFor()
    await seen.close()
  })

  it('ending a session names it, and the focus stays among the sessions', async () => {
    const { page, ...seen } = await openSignedIn('rosalind', 'viewer')
    const other = await openPage(browser, `${front.url}/ui/sign-in`, desktop)
    await other.page.keyboard.type('rosalind@example.com')
    await other.page.keyboard.press('Tab')
    await other.page.keyboard.type(password)
    await other.page.keyboard.press('Enter')
    await other.page.getByRole('heading', { level: 1, name: 'Default project' }).waitFor()
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('button', { name: 'End Chrome on Linux' }).click()
    await page.getByText('Chrome on Linux has ended.').waitFor()
    await page.getByRole('button', { name: 'End Chrome on Linux' }).waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Where you are signed in')
    for (const one of [seen, other]) await one.close()
  })

  it('looks are chosen on the account screen, which follows the menu', async () => {
    const { page, ...seen } = await openSignedIn('ida', 'viewer')
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('radio', { name: 'Compact' }).check()
    assert.equal(await page.evaluate('document.documentElement.dataset.density'), 'compact')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('dark')
    await page.keyboard.press('Enter')
    await page.getByRole('radio', { name: 'Dark', checked: true }).waitFor()
    await seen.close()
  })

  it('changes of a user can be undone, and a deletion gives the focus to the next row', async t => {
    const alone = await startFront()
    t.after(() => alone.close())
    const seen = await openPage(browser, await invite(alone, 'admin'), desktop)
    const { page } = seen
    t.after(seen.close)
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Users' }).waitFor()
    for (const name of ['bea', 'cyd', 'dot']) {
      const body = {
        token: new URL(await invite(alone, 'viewer')).hash.slice(1),
        name,
        email: `${name}@example.com`,
        password,
      }
      const headers = { 'content-type': 'application/json', 'x-pennon-ui': '1' }
      const options = { method: 'POST', headers, body: JSON.stringify(body) }
      assert.equal((await fetch(`${alone.url}/api/session/link/`, options)).status, 200)
    }
    await page.getByRole('link', { name: 'Users' }).click()
    const row = page.getByRole('main').getByRole('listitem').filter({ hasText: 'cyd' })
    const act = async (name: string, action: string) => {
      await page.getByRole('button', { name: `Actions for ${name}` }).click()
      await page.getByRole('menuitem', { name: action }).click()
    }
    const undo = async (text: string) => {
      const toast = page.getByRole('alertdialog').filter({ hasText: text })
      await toast.getByRole('button', { name: 'Undo' }).click()
    }

    await row.getByRole('button', { name: /^Viewer/ }).click()
    await page.getByRole('option', { name: 'Editor' }).click()
    await row.getByRole('button', { name: /^Editor/ }).waitFor()
    await undo('cyd is an editor.')
    await row.getByRole('button', { name: /^Viewer/ }).waitFor()

    await act('cyd', 'Disable')
    await row.getByText('Disabled').waitFor()
    await undo('cyd is disabled.')
    await row.getByText('Disabled').waitFor({ state: 'detached' })

    await row.getByText('sees persons').waitFor()
    await act('cyd', 'Hide persons from them')
    await row.getByText('sees no persons').waitFor()
    await undo('cyd no longer sees persons.')
    await row.getByText('sees persons').waitFor()

    await page.route('**/api/users/?*', async route => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), count: 1_204 } })
    })
    await act('cyd', 'Delete')
    await page.getByRole('button', { name: 'Delete cyd' }).click()
    await row.waitFor({ state: 'detached' })
    await page.getByRole('alertdialog', { name: 'Delete cyd' }).waitFor({ state: 'detached' })
    assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Actions for dot')
    await page.getByText('The first 3 of 1,204 users').waitFor()
  })

  it('a list stays when reading it again fails, and can be tried again when it was never read', async () => {
    const { page, ...seen } = await openSignedIn('mary', 'admin')
    const refuse = () => page.route('**/api/users/?*', route => route.fulfill({ status: 500, body: '' }))
    await refuse()
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByText('The users could not be loaded').waitFor()
    await page.unroute('**/api/users/?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('mary@example.com').waitFor()
    await refuse()
    await page.getByRole('link', { name: 'Home' }).click()
    const answered = page.waitForResponse('**/api/users/?*')
    await page.getByRole('link', { name: 'Users' }).click()
    await answered
    await page.getByText('mary@example.com').waitFor()
    assert.equal(await page.getByText('The users could not be loaded').count(), 0)
    await seen.close()
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
