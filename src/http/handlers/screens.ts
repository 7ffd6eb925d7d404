// `/ui/…`: the page of the screens, under every address that it has, and its assets. The page may load only what is served
// here, run only the scripts that it names itself, and turn no text into markup.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Screens } from '#ports/screens.ts'
import type { RandomBytes } from '#services/manage/generate-key.ts'
import { wireError } from '#wire/wire-error.ts'
import { listAcceptedCompressions } from '../shared/accepted-compressions.ts'
import { type Route, sendError } from '../shared/route.ts'

export interface ScreensOptions {
  readonly screens: Screens
  readonly randomBytes: RandomBytes
  /** How to build the screens here, for an operator: a sentence. */
  readonly howToBuild: string
}

const nonceBytes = 16

export function screensRoutes({ screens, randomBytes, howToBuild }: ScreensOptions): Route[] {
  const common = { method: 'GET', access: 'open', group: 'ui', bodyLimitBytes: 1_024 } as const
  return [
    { ...common, path: '/ui', handler: answerPage },
    { ...common, path: '/ui/*', handler: answerPage },
    { ...common, path: '/ui/assets/*', handler: answerAsset },
  ]

  async function answerPage(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const nonce = Buffer.from(randomBytes(nonceBytes)).toString('base64')
    const page = await screens.readPage()
    reply.headers({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': buildPolicy(nonce),
      'x-content-type-options': 'nosniff',
      // Addresses contain distinct ids.
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': permissionsPolicy,
    })
    if (page === null) reply.code(503).send(renderMissing(howToBuild))
    else reply.send(page.join(nonce))
  }

  async function answerAsset(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const asset = await screens.readAsset((request.params as { '*': string })['*'])
    if (asset === null) return sendError(reply, noSuchAsset)
    const [encoding] = listAcceptedCompressions(request.headers['accept-encoding'])
    if (encoding !== undefined) reply.header('content-encoding', encoding)
    reply
      .headers({
        'content-type': asset.contentType,
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'Accept-Encoding',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
      })
      .send(encoding === undefined ? asset.bytes : asset.encoded[encoding])
  }
}

const noSuchAsset = wireError(404, 'not_found', 'There is no such file. Open /ui/ again: Pennon may have been updated.')

/** `strict-dynamic` lets the entry load its chunks; scripts that the same origin serves to SDKs cannot run here. */
function buildPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

const permissionsPolicy = [
  'accelerometer=()',
  'camera=()',
  'display-capture=()',
  'geolocation=()',
  'gyroscope=()',
  'microphone=()',
  'midi=()',
  'payment=()',
  'usb=()',
  'clipboard-write=(self)',
].join(', ')

/** @param howToBuild text of our own, without characters that have a meaning in HTML. */
function renderMissing(howToBuild: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pennon</title>
<h1>The screens are not built</h1>
<p>${howToBuild} Flags, events and the private API work without them.</p>
`
}
