import { call } from '../api/client.ts'
import { showToast } from '../components/overlays/toasts.tsx'

/** Ends the session, and with it everything that the page holds of it. */
export async function signOut(): Promise<void> {
  try {
    await call('DELETE /api/session/')
    location.assign('/ui/sign-in')
  } catch (error) {
    showToast({ kind: 'bad', text: `You are still signed in. ${(error as Error).message}` })
  }
}
