/* Line: the connection to the server. Gradio's own client never notices a stream that ends in silence, and
 * where it does notice, it throws the page away: here a lost stream ends what it was to tell, and is sought. */
(() => {
  "use strict";
  const { emit } = window.Scope;

  const SILENCE_SECONDS = 45; // Gradio says something every 15 at the latest.
  const SEEK_SECONDS = 2;
  const ANSWER_SECONDS = 5;
  const HERE_SECONDS = 10;
  const ROUTE = /\/gradio_api\/(queue\/data|queue\/join|run\/)/;
  const LOST = "No connection to the server.";
  const CLOSE = '"close_stream"';
  const STRANGER = '"session_not_found":true';

  const ask = window.fetch.bind(window);
  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  const line = { lost: false };
  let session = null;
  let staying = null;

  /** What Gradio's client takes for the end of every event that is still open, and of the stream. */
  const ENDED = [
    { msg: "process_completed", success: false, output: { error: LOST, visible: false } }, { msg: "close_stream" },
  ].map((message) => `data: ${JSON.stringify(message)}\n\n`).join("");

  function streamed(body) {
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  }

  /** The next piece of a stream; an error after a long silence: a dead connection says nothing at all. */
  async function piece(reader) {
    let silence;
    const late = new Promise((_, fail) => { silence = setTimeout(fail, 1000 * SILENCE_SECONDS, new Error(LOST)); });
    try {
      return await Promise.race([reader.read(), late]);
    } finally {
      clearTimeout(silence);
    }
  }

  /** The stream of events, with an end of ours where it is cut off. */
  async function events(input, init) {
    const { signal } = input;
    try {
      const answer = await ask(input, init);
      if (!answer.ok) throw new Error(LOST);
      return streamed(ending(answer.body.getReader(), signal));
    } catch (error) {
      if (signal.aborted) throw error;
      return streamed(new ReadableStream({ start: end }));
    }
  }

  function ending(reader, signal) {
    const text = new TextDecoder();
    let tail = "";
    return new ReadableStream({
      async pull(controller) {
        try {
          const { done, value } = await piece(reader);
          if (!done) tail = (tail + text.decode(value, { stream: true })).slice(-400);
          if (!done && !tail.includes(STRANGER)) return controller.enqueue(value);
          if (done && tail.includes(CLOSE)) return controller.close();
        } catch (error) {
          if (signal.aborted) return controller.error(error);
        }
        reader.cancel().catch(() => {});
        return end(controller);
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }

  function end(controller) {
    controller.enqueue(new TextEncoder().encode(ENDED));
    controller.close();
    lose();
  }

  /** What was asked of the server; should it not be reached, an answer that says so. */
  async function answered(input, init) {
    try {
      return await ask(input, init);
    } catch {
      lose();
      return Response.json({ error: LOST, detail: LOST }, { status: 502 });
    }
  }

  window.fetch = (input, init) => {
    const url = new URL(input.url || input, document.baseURI);
    const [, route] = ROUTE.exec(url.pathname) || [];
    if (!route) return ask(input, init);
    if (route !== "queue/data") return answered(input, init);
    session = url.searchParams.get("session_hash");
    return events(input, init);
  };

  async function lose() {
    if (line.lost) return;
    line.lost = true;
    emit("line", line);
    while (!(await found())) await pause(SEEK_SECONDS);
    line.lost = false;
    staying = staying || setInterval(() => presence("here"), 1000 * HERE_SECONDS);
    emit("line", line);
  }

  /** Whether the server answers. One that was started anew knows nothing of this page, which begins again. */
  async function found() {
    try {
      const answer = await ask("gradio_api/app_id", { signal: AbortSignal.timeout(1000 * ANSWER_SECONDS) });
      const { app_id: id } = await answer.json();
      if (id !== window.gradio_config.app_id) location.reload();
      return (await presence("back")).ok;
    } catch {
      return false;
    }
  }

  /** Tell the server that this page is back, here or gone. */
  function presence(word) {
    const { id } = window.gradio_config.dependencies.find((dependency) => dependency.api_name === "presence");
    const body = JSON.stringify({ data: [word], fn_index: id, session_hash: session });
    const headers = { "Content-Type": "application/json" };
    return ask("gradio_api/run/predict", { method: "POST", keepalive: true, headers, body }).catch(() => ({ ok: false }));
  }

  window.addEventListener("pagehide", ({ persisted }) => {
    if (session && !persisted) presence("gone");
  });

  window.Scope.line = line;
})();
