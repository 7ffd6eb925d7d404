// What the build of the screens makes, as browsers get it from a front.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { screensFolder } from '../../src/distribution.ts'
import { startFront } from '../support/front.ts'
import { startedForTests } from '../support/started-for-tests.ts'

const kilobyte = 1_000
/** Bytes in gzip. The entry is what every screen needs; a screen's own files come on top. */
const bytesMax = { entry: 200 * kilobyte, screen: 60 * kilobyte, styles: 25 * kilobyte }

describe('the built screens', () => {
  const front = startedForTests(() => startFront())
  let folder: string
  let page: string
  before(() => {
    const { stamp } = JSON.parse(readFileSync(join(screensFolder, 'current.json'), 'utf8')) as { stamp: string }
    folder = join(screensFolder, stamp)
    page = readFileSync(join(folder, 'index.html'), 'utf8')
  })

  const gzipBytes = (name: string) => readFileSync(join(folder, 'assets', `${name}.gz`)).length
  const assets = () => readdirSync(join(folder, 'assets')).filter(name => !/\.(?:br|gz)$/.test(name))
  const sourceOf = (name: string) => readFileSync(join(folder, 'assets', name), 'utf8')

  /** The scripts that a script imports before it runs, and those that these import. */
  function staticImportsOf(entry: string): ReadonlySet<string> {
    const found = new Set([entry])
    for (const name of found)
      for (const [, imported] of sourceOf(name).matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) found.add(imported!)
    return found
  }

  it('load at most 200 kB for the entry, 60 kB more for a screen, and 25 kB of styles', () => {
    const entry = /src="\/ui\/assets\/(index-[^"]+\.js)"/.exec(page)![1]!
    const ofEntry = staticImportsOf(entry)
    const sum = (names: Iterable<string>) => [...names].reduce((bytes, name) => bytes + gzipBytes(name), 0)
    assert.ok(sum(ofEntry) <= bytesMax.entry, `the entry has ${sum(ofEntry)} bytes`)
    const scripts = assets().filter(name => name.endsWith('.js'))
    for (const name of scripts) {
      const more = sum([...staticImportsOf(name)].filter(each => !ofEntry.has(each)))
      assert.ok(more <= bytesMax.screen, `${name} brings ${more} bytes`)
    }
    const styles = sum(assets().filter(name => name.endsWith('.css')))
    assert.ok(styles <= bytesMax.styles, `the styles have ${styles} bytes`)
  })

  it('have no script or style within the page, and name no other origin', () => {
    assert.doesNotMatch(page, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|(?:src|href)="(?!\/ui\/assets\/)/)
  })

  it('contain neither the workbench nor the program that is built for developing', () => {
    for (const name of assets().filter(each => each.endsWith('.js'))) {
      assert.ok(!name.includes('workbench'), name)
      assert.ok(!sourceOf(name).includes('react.dev/link/react-devtools'), name)
    }
  })

  it('are served with every asset, in every encoding, with headers that keep them where they belong', async () => {
    for (const name of assets()) {
      for (const encoding of ['br', 'gzip', 'identity']) {
        const response = await fetch(`${front.url}/ui/assets/${name}`, { headers: { 'accept-encoding': encoding } })
        assert.equal(response.status, 200, name)
        assert.equal(response.headers.get('content-encoding') ?? 'identity', encoding)
        assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
        assert.equal(response.headers.get('cross-origin-resource-policy'), 'same-origin')
        assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
        assert.deepEqual(Buffer.from(await response.arrayBuffer()), readFileSync(join(folder, 'assets', name)), name)
      }
    }
    const response = await fetch(`${front.url}/ui/`)
    assert.ok(Buffer.byteLength(await response.text()) < 3 * kilobyte)
  })
})
