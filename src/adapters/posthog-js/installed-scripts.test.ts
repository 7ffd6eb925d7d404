import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openInstalledScripts } from './installed-scripts.ts'

describe('openInstalledScripts', () => {
  it('finds the library, with its size and its text in every encoding', async () => {
    const scripts = openInstalledScripts()
    assert.match(scripts.version, /^1\.\d+\.\d+$/)
    const array = (await scripts.findScript('array.js'))!
    const whole = await array.readBytes()
    assert.equal(whole.length, array.byteCount)
    assert.deepEqual(gunzipSync((await array.readCompressed('gzip'))!), whole)
    assert.equal((await scripts.findScript('array.js'))!.hash, array.hash)
  })

  it('provides every script of the package byte for byte, as the publisher’s hashes confirm', async () => {
    const list = new URL('integrity.json', import.meta.resolve('posthog-js'))
    const { files } = JSON.parse(readFileSync(list, 'utf8')) as { files: Record<string, string> }
    const scripts = openInstalledScripts()
    const listed = Object.entries(files).filter(([name]) => name.endsWith('.js'))
    assert.ok(listed.length > 40)
    for (const [name, hash] of listed) {
      const bytes = await (await scripts.findScript(name))!.readBytes()
      assert.equal(`sha384-${createHash('sha384').update(bytes).digest('base64')}`, hash, name)
    }
  })

  it('reads a script once for all who need it at the same time', async () => {
    const array = (await openInstalledScripts().findScript('array.js.map'))!
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => array.readBytes()))
    assert.equal(new Set([...atOnce, await array.readBytes()]).size, 1)
  })

  it('compresses a script once, however many ask at the same time', async () => {
    const scripts = openInstalledScripts()
    const packed = await Promise.all(
      Array.from({ length: 5 }, async () => (await scripts.findScript('loader.js'))!.readCompressed('br')),
    )
    assert.equal(new Set(packed).size, 1)
  })

  it('provides no compressed copy of source maps, or of scripts that exceed its cache limit', async () => {
    const scripts = openInstalledScripts({ keptBytesMax: 5_000 })
    assert.notEqual(await (await scripts.findScript('loader.js'))!.readCompressed('gzip'), null)
    assert.equal(await (await scripts.findScript('array.js'))!.readCompressed('gzip'), null)
    const unbounded = openInstalledScripts()
    assert.equal(await (await unbounded.findScript('loader.js.map'))!.readCompressed('gzip'), null)
  })

  it('finds nothing under a name that is not a script of the package', () => {
    const scripts = openInstalledScripts()
    for (const name of ['', '../package.json', 'array.d.ts', 'integrity.json', 'src', '__proto__', 'constructor']) {
      assert.equal(scripts.findScript(name), null, name)
    }
  })
})
