// Performs one load run in a separate process: receives the options as an IPC message and sends the result as another.

import { type LoadOptions, runLoad } from './load-generator.ts'

process.on('message', async (message: Omit<LoadOptions, 'requests'> & { requests: string[] }) => {
  const requests = message.requests.map(text => Buffer.from(text, 'base64'))
  const result = await runLoad({ ...message, requests })
  process.send?.(result, () => process.disconnect?.())
})
