// The report of a rehearsal as a page in a browser, at the size of a phone, with records that try to break it.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { generic } from '#importer/sources/generic/generic.ts'
import { launchChromium, noChromium } from '../sdk/browser/browser.ts'
import { mapping } from '../support/import-command.ts'
import { jobOf } from '../support/import-job.ts'

const hostile = '<script>document.title = "broken"</script><img src=x onerror="document.title=1">'

describe('the HTML report of an import', { skip: noChromium() }, () => {
  for (const colorScheme of ['light', 'dark'] as const)
    it(`fits a phone, loads no resources and runs no scripts (${colorScheme})`, async t => {
      const records = Array.from({ length: 60 }, (_, index) => ({
        ...{ id: `r-${index}`, event: index % 3 === 0 ? hostile : 'x'.repeat(190), user: index % 9 === 0 ? null : 'u' },
        ...{ at: new Date(Date.UTC(2024, 0, 1 + index)).toISOString(), props: { [hostile]: hostile } },
      }))
      const job = jobOf(t, [records], generic, { config: { mapping } })
      await job.report()
      const browser = await launchChromium()
      t.after(() => browser.close())
      const page = await browser.newPage({ viewport: { width: 375, height: 800 }, colorScheme })
      const asked: string[] = []
      page.on('request', request => asked.push(request.url()))
      await page.goto(pathToFileURL(job.folder.file('report.html')).href)
      assert.equal(asked.length, 1, asked.join(' '))
      assert.equal(await page.title(), 'Import from generic')
      const width = await page.evaluate('document.documentElement.scrollWidth')
      assert.equal(width, 375, 'tables scroll, the page does not')
      for (const name of ['Suspicious findings', 'Rejected records by reason']) {
        const region = page.getByRole('region', { name })
        const [scroll, client] = await region.evaluate(each => [each.scrollWidth, each.clientWidth])
        assert.equal(scroll, client, `${name} wraps`)
      }
      assert.equal(await page.locator('.chart rect').count(), 59, 'the last day has no event')
      assert.equal(await page.locator('.chart rect.gap').count(), 6)
      const headings = await page.getByRole('heading', { level: 2 }).allTextContents()
      for (const heading of ['Events', 'Days', 'Rejects and skips', 'Before and after'])
        assert.ok(headings.includes(heading))
      await page.getByRole('table', { name: 'Rejected records by reason' }).waitFor()
      const text = await page.evaluate('getComputedStyle(document.body).color')
      assert.equal(text, colorScheme === 'dark' ? 'rgb(255, 255, 255)' : 'rgb(0, 0, 0)')
    })
})
