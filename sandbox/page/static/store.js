// What the page knows: a copy of what the server lets this person see, kept up to date by one event stream.

export const store = {
  state: { users: [], groups: [], channels: [], all_channels: [], faults: [], views: [], sockets: 0, me: null },
  messages: new Map(),
  calls: [],
  envelopes: [],
  violations: [],
  live: false,
};

let source;
let revision = 0;

/** Listen as a person; `changed(news)` after each change, `status()` when the connection comes or goes. */
export function connect(user, changed, status) {
  source?.close();
  const mine = new EventSource("/_page/events?as=" + encodeURIComponent(user));
  source = mine;
  const say = (live) => {
    if (store.live !== live) status((store.live = live));
  };
  mine.onmessage = (event) => {
    take(JSON.parse(event.data));
    say(true);
    changed();
  };
  mine.onerror = () => {
    say(false);
    // the browser retries by itself unless the answer was no stream at all
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => source === mine && connect(user, changed, status), 1000);
  };
}

function take(news) {
  if (news.fresh) {
    store.messages.clear();
    for (const list of [store.calls, store.envelopes, store.violations]) list.length = 0;
  }
  if (news.state) store.state = news.state;
  for (const message of news.messages || []) {
    if (message.gone) store.messages.delete(message.key);
    else store.messages.set(message.key, { ...message, revision: ++revision });
  }
  for (const name of news.restart || []) store[name].length = 0;
  for (const name of ["calls", "envelopes", "violations"]) {
    for (const entry of news[name] || []) store[name][entry.n] = entry;
  }
}

export const user = (id) => store.state.users.find((one) => one.id === id);
export const group = (id) => store.state.groups.find((one) => one.id === id);
export const me = () => store.state.me;
export const channel = (id) => store.state.channels.find((one) => one.id === id || one.name === id);
export const channelName = (id) => store.state.all_channels.find((one) => one.id === id)?.name;

/** The name of a conversation as its reader calls it. */
export const title = (place) => (place.kind === "im" ? "@" + store.state.app : "#" + place.name);

const inThread = (m) => m.thread_ts && m.thread_ts !== m.ts;
const byTime = (a, b) => (a.ts < b.ts ? -1 : 1);

/** What stands in a channel itself, oldest first. */
export function feed(channelId) {
  const all = [...store.messages.values()].filter((m) => m.channel === channelId);
  return all.filter((m) => !inThread(m) || m.broadcast).sort(byTime);
}

/** The replies of every thread of a channel, by the timestamp of their parent. */
export function threads(channelId) {
  const found = new Map();
  for (const m of [...store.messages.values()].filter((one) => one.channel === channelId && inThread(one)).sort(byTime)) {
    found.set(m.thread_ts, [...(found.get(m.thread_ts) || []), m]);
  }
  return found;
}
