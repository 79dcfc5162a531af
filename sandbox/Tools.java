import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one process, which saves most of their time.
 *
 * <p>Each line of the standard input is the input of a tool, its class and its arguments, in base64
 * and separated by blanks ("-" for an empty one). Each is answered by a line: exit status, standard
 * output and standard error, the latter two in the same way.
 */
final class Tools {
    private static final long HOOK_TIMEOUT_MS = 30_000;

    /** Unwinds the stack of a tool that has called exit. */
    private static final class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** Loads the classes of tools anew for each call: some count in static fields. */
    private static final class ToolLoader extends URLClassLoader {
        ToolLoader(URL[] jars) {
            super(jars, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.") && !name.startsWith("kafka.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }
    }

    private static final List<Runnable> hooks = new ArrayList<>();
    private static final ByteArrayOutputStream output = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream errors = new ByteArrayOutputStream();
    private static String answer;

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        InputStream requests = System.in;
        // Once and for all: Scala and the log keep the streams that they find first.
        System.setOut(new PrintStream(output, true));
        System.setErr(new PrintStream(errors, true));
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        collectShutdownHooks();
        URL[] jars = jars();
        BufferedReader lines = new BufferedReader(new InputStreamReader(requests));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[][] words = Arrays.stream(line.split(" ")).map(Tools::decode).toArray(byte[][]::new);
            String[] command = Arrays.stream(words).skip(1).map(String::new).toArray(String[]::new);
            output.reset();
            errors.reset();
            System.setIn(new ByteArrayInputStream(words[0]));
            answer = null;
            run(jars, command[0], Arrays.copyOfRange(command, 1, command.length));
            answers.println(answer);
            answers.flush();
        }
    }

    /** Exits at most once: a tool may catch what unwinds it, print it and exit again. */
    private static void exit(int status) {
        if (answer == null) answer = answer(status);
        throw new Ended();
    }

    private static void run(URL[] jars, String tool, String[] arguments) throws Exception {
        hooks.clear();
        try (ToolLoader loader = new ToolLoader(jars)) {
            Thread.currentThread().setContextClassLoader(loader);
            call(loader, tool, arguments);
            for (Runnable hook : new ArrayList<>(hooks)) {
                Thread thread = new Thread(hook);
                thread.start();
                thread.join(HOOK_TIMEOUT_MS);
            }
        }
    }

    private static void call(ToolLoader loader, String tool, String[] arguments) throws Exception {
        int status = 0;
        try {
            Class<?> main = Class.forName(tool, true, loader);
            main.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            status = 1;
            if (answer == null) e.getCause().printStackTrace();
        }
        if (answer == null) answer = answer(status);
    }

    /** Has the tools' shutdown hooks run when a tool ends. Kafka 2.4 and older cannot collect them. */
    private static void collectShutdownHooks() throws Exception {
        for (Method method : Exit.class.getMethods()) {
            if (!method.getName().equals("setShutdownHookAdder")) continue;
            Class<?> adder = method.getParameterTypes()[0];
            method.invoke(null, Proxy.newProxyInstance(
                    Tools.class.getClassLoader(),
                    new Class<?>[] {adder},
                    (proxy, called, arguments) -> {
                        hooks.add((Runnable) arguments[1]);
                        return null;
                    }));
        }
    }

    private static URL[] jars() throws Exception {
        List<URL> found = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            found.add(new File(entry).toURI().toURL());
        }
        return found.toArray(new URL[0]);
    }

    /** Returns the status and everything printed until now. */
    private static String answer(int status) {
        System.out.flush();
        System.err.flush();
        return status + " " + encode(output) + " " + encode(errors) + ".";
    }

    private static byte[] decode(String word) {
        return word.equals("-") ? new byte[0] : Base64.getDecoder().decode(word);
    }

    private static String encode(ByteArrayOutputStream printed) {
        String encoded = Base64.getEncoder().encodeToString(printed.toByteArray());
        return encoded.isEmpty() ? "-" : encoded;
    }
}
