// `/static/…`: the browser library, its extensions and their source maps, under every name that any version requests.
// Source: docs/wire/clients.md 10.1, 10.2.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BrowserScripts } from '#ports/browser-scripts.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Route, sendError } from '../shared/route.ts'
import { chooseCompressedScript, javascript, sendScript } from './script-answer.ts'

/** For addresses that contain the version: their contents never change. */
const forVersion = 'public, max-age=31536000, immutable'
/**
 * For addresses without the version, which mean the installed version: an hour after an upgrade, every page has the new
 * one.
 */
const forInstalled = 'public, max-age=3600'

export function staticScriptsRoutes(scripts: BrowserScripts): Route[] {
  const common = { access: 'open', group: 'browser', bodyLimitBytes: 1_024 } as const
  const major = scripts.version.split('.', 1)[0]
  return (['GET', 'HEAD'] as const).flatMap((method): Route[] => [
    {
      ...common,
      method,
      path: '/static/:file',
      // Older libraries name their own version and get the installed version, with which they work.
      handler: (request, reply) => answerScript(readFileName(request), isVersionPinned(request), request, reply),
    },
    {
      ...common,
      method,
      path: '/static/:version/:file',
      handler: (request, reply) => {
        const { version } = request.params as { version: string }
        // After a 404 the library falls back to the address without a version.
        if (version !== scripts.version && version !== major) return sendError(reply, notInstalled)
        return answerScript(readFileName(request), version === scripts.version, request, reply)
      },
    },
  ])

  function answerScript(
    name: string,
    isForVersion: boolean,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void | Promise<void> {
    const found = scripts.findScript(name)
    if (found === null) return sendError(reply, notInstalled)
    return found.then(async script => {
      const packed = await chooseCompressedScript(request, script)
      await sendScript(request, reply, packed, {
        contentType: name.endsWith('.map') ? 'application/json' : javascript,
        cacheControl: isForVersion ? forVersion : forInstalled,
        vary: 'Origin',
        hash: script.hash,
      })
    })
  }

  function isVersionPinned(request: FastifyRequest): boolean {
    return (request.query as { v?: unknown }).v === scripts.version
  }
}

const notInstalled = wireError(
  404,
  'not_found',
  'No such script. /static/array.js is the installed version of posthog-js.',
)

function readFileName(request: FastifyRequest): string {
  return (request.params as { file: string }).file
}
