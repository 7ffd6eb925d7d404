// Builds the screens into an empty folder: the page and its assets, each also compressed, so that the server only sends bytes.
// Prints the files of `src/` that the screens contain, as JSON. `scripts/ensure-screens.mjs` runs this.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { build, type Plugin } from 'vite'
import { iconNames } from './src/components/icon-names.ts'

const root = join(import.meta.dirname, '..')
const [outDir] = process.argv.slice(2)
if (outDir === undefined) throw new Error('Usage: node web/build.ts FOLDER')

// A test that builds has `test` here, and would get the version of React for developing.
process.env.NODE_ENV = 'production'

/** The server replaces this in the page by a new nonce for each answer. */
const noncePlaceholder = 'CSP_NONCE'
/** Levels above 9 take twelve times as long for 8 % fewer bytes. */
const brotliQuality = 9

const sources = new Set<string>()
try {
  await build({
    configFile: false,
    root: import.meta.dirname,
    base: '/ui/',
    logLevel: 'silent',
    html: { cspNonce: noncePlaceholder },
    define: { WITH_WORKBENCH: JSON.stringify(process.env.PENNON_UI_WORKBENCH === '1') },
    build: {
      outDir,
      emptyOutDir: false,
      // The oldest browsers whose JSON.parse gives a number's own text.
      target: ['chrome114', 'firefox135', 'safari18.4'],
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 2_000,
      // Packages mark what is for browsers alone, which means nothing to a build without a server side.
      rolldownOptions: { checks: { moduleLevelDirective: false } },
    },
    plugins: [englishOnly(), withoutInnerHtml(), iconSprite(), recordSources(sources)],
  })
  await compressAssets(join(outDir, 'assets'))
  console.log(JSON.stringify([...sources].sort()))
} catch (error) {
  // Without the colours and the stack of the bundler, which say nothing about the sources.
  const message = stripVTControlCharacters(error instanceof Error ? error.message : String(error))
  console.error(message.split(/\n\s*(?:Stack backtrace|at )/, 1)[0]!.trim())
  process.exit(1)
}

/** The widgets' messages in other languages are replaced by the English ones: the screens are in English. */
function englishOnly(): Plugin {
  return {
    name: 'english-only',
    enforce: 'pre',
    resolveId: (source, importer) =>
      /^\.\/[a-z]{2}-[A-Z]{2}\.mjs$/.test(source) && importer?.includes('/intl/')
        ? join(dirname(importer), 'en-US.mjs')
        : null,
  }
}

/**
 * React Aria's announcer empties its element by `innerHTML`, which Trusted Types forbid. Without this, a second step of a
 * number field would throw.
 */
function withoutInnerHtml(): Plugin {
  return {
    name: 'without-inner-html',
    transform: {
      filter: { id: /dist\/private\/live-announcer\/LiveAnnouncer\.mjs$/ },
      handler(code) {
        const changed = code.replaceAll(/\.innerHTML = ''/g, '.replaceChildren()')
        if (changed === code) throw new Error('The announcer of React Aria has changed: is this plugin still needed?')
        return changed
      },
    },
  }
}

/** `virtual:icons` is the address of one file with the icons that the screens use. */
function iconSprite(): Plugin {
  return {
    name: 'icon-sprite',
    resolveId: source => (source === 'virtual:icons' ? '\0icons' : null),
    load(id) {
      if (id !== '\0icons') return null
      const path = join(root, 'node_modules/@iconify-json/lucide/icons.json')
      const { icons } = JSON.parse(readFileSync(path, 'utf8')) as { icons: Record<string, { body: string }> }
      const symbols = iconNames.map(name => `<symbol id="${name}" viewBox="0 0 24 24">${icons[name]!.body}</symbol>`)
      const source = `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>`
      const reference = this.emitFile({ type: 'asset', name: 'icons.svg', source })
      return `export default import.meta.ROLLUP_FILE_URL_${reference}`
    },
  }
}

function recordSources(sources: Set<string>): Plugin {
  return {
    name: 'record-sources',
    moduleParsed: ({ id }) => {
      const path = relative(root, id)
      if (path.startsWith('src/')) sources.add(path)
    },
  }
}

async function compressAssets(assets: string): Promise<void> {
  await Promise.all(
    readdirSync(assets).map(async name => {
      const bytes = readFileSync(join(assets, name))
      const params = { [constants.BROTLI_PARAM_QUALITY]: brotliQuality }
      writeFileSync(join(assets, `${name}.br`), await promisify(brotliCompress)(bytes, { params }))
      writeFileSync(join(assets, `${name}.gz`), await promisify(gzip)(bytes, { level: 9 }))
    }),
  )
}
