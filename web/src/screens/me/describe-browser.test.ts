import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeBrowser } from './describe-browser.ts'

it('a browser is named as people know it, though each pretends to be others', () => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
  const cases = [
    [chrome, 'Chrome on Linux'],
    [`${chrome} Edg/140.0`, 'Edge on Linux'],
    ['Mozilla/5.0 (Windows NT 10.0; rv:143.0) Gecko/20100101 Firefox/143.0', 'Firefox on Windows'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 Version/18.4 Mobile/15E148 Safari/604.1',
      'Safari on iPhone',
    ],
    ['curl/8.9', 'A program'],
    ['', 'A program'],
  ] as const
  for (const [userAgent, name] of cases) assert.equal(describeBrowser(userAgent), name)
})
